import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Calls something within a limit: java Permits.java http://127.0.0.1:7070 */
class Permits {
    /** Why a permit was not to be had, and after how many seconds to try again; 0 when that is not known. */
    static class Throttled extends Exception {
        final String reason;
        final int retryAfter;

        Throttled(String reason, int retryAfter) {
            super(reason);
            this.reason = reason;
            this.retryAfter = retryAfter;
        }
    }

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String address;

    Permits(String address) {
        this.address = address;
    }

    /** Waits for tokens, for at most so many seconds, and returns the name of a permit. */
    String acquire(int tokens, double seconds) throws Exception {
        String answer = post("/v1/acquire", "{\"tokens\":" + tokens + ",\"timeout_seconds\":" + seconds + "}");
        return field(answer, "permit");
    }

    /** Ends a permit with what the call really cost. */
    void settle(String permit, int used) throws Exception {
        post("/v1/settle", "{\"permit\":\"" + permit + "\",\"used\":" + used + "}");
    }

    private String post(String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(address + path))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            int retryAfter = answer.headers().firstValue("Retry-After").map(Integer::parseInt).orElse(0);
            throw new Throttled(field(answer.body(), "reason"), retryAfter);
        }
        return answer.body();
    }

    /** A text in an object. A program that has a JSON library uses that. */
    private static String field(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([^\"]*)\"").matcher(json);
        return m.find() ? m.group(1) : "";
    }

    public static void main(String[] args) throws Exception {
        Permits limit = new Permits(args[0]);
        String permit = limit.acquire(1, 10);
        try {
            limit.acquire(1, 0);
        } catch (Throttled e) {
            System.out.println("refused: " + e.reason);
        }
        limit.settle(permit, 1);
        limit.settle(limit.acquire(1, 10), 1);
        System.out.println("done");
    }
}
