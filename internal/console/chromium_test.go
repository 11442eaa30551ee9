package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A size is the size of a window in pixels, and whether it prefers dark colours. A width below 600 is a phone's.
type size struct {
	width, height int
	dark          bool
}

// A tab is one page in a headless Chromium of its own. The browser reads and writes JSON through two pipes, each message ended by a zero
// byte.
type tab struct {
	to      *os.File
	replies chan reply
	session string
	id      int
}

// A reply is a message from the browser. Messages without an ID are events, which are ignored.
type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// chromium opens a page in a real browser. Without one the test is skipped, or fails where everything is required. The browser runs without
// a sandbox, because root can have none.
func chromium(t *testing.T, url string, s size) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a browser")
	}
	binary := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
		}
	}
	if binary == "" && os.Getenv("NUMATHROTTLE_REQUIRE_STORES") != "1" {
		t.Skip("chromium is not installed (Debian: apt-get install --no-install-recommends chromium)")
	}
	require.NotEmpty(t, binary, "chromium is not installed")
	in, to, err := os.Pipe()
	require.NoError(t, err)
	from, out, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-extensions", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.Stderr, cmd.WaitDelay, cmd.ExtraFiles = t.Output(), 5*time.Second, []*os.File{in, out}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, errors.Join(cmd.Start(), in.Close(), out.Close()))
	p := &tab{to: to, replies: make(chan reply, 16)}
	go p.read(from)
	t.Cleanup(func() { // the context of the test has ended
		require.NoError(t, to.Close())
		_ = cmd.Wait() // how it ends does not matter
		require.NoError(t, from.Close())
	})

	var target struct {
		TargetID string `json:"targetId"`
	}
	require.NoError(t, p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	require.NoError(t, p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached))
	p.session = attached.SessionID
	p.resize(t, s)
	require.NoError(t, p.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil))
	require.NoError(t, p.call("Page.navigate", map[string]any{"url": url}, nil))
	return p
}

// read reads replies until the browser has ended.
func (p *tab) read(from *os.File) {
	defer close(p.replies)
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var got reply
		if json.Unmarshal(text[:len(text)-1], &got) == nil && got.ID > 0 {
			p.replies <- got
		}
	}
}

// call makes one call and waits for its reply: long, for a busy machine.
func (p *tab) call(method string, params map[string]any, result any) error {
	p.id++
	message := map[string]any{"id": p.id, "method": method, "params": params}
	if p.session != "" {
		message["sessionId"] = p.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := p.to.Write(append(text, 0)); err != nil {
		return err
	}
	for late := time.After(30 * time.Second); ; {
		select {
		case got, ok := <-p.replies:
			switch {
			case !ok:
				return errors.New("the browser has ended")
			case got.ID != p.id: // of a call that timed out
			case got.Error != nil:
				return fmt.Errorf("%s: %s", method, got.Error.Message)
			case result != nil:
				return json.Unmarshal(got.Result, result)
			default:
				return nil
			}
		case <-late:
			return fmt.Errorf("%s: no reply", method)
		}
	}
}

// resize changes the size and the colours of the window.
func (p *tab) resize(t *testing.T, s size) {
	t.Helper()
	require.NoError(t, p.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": s.width, "height": s.height, "deviceScaleFactor": 1, "mobile": s.width < 600,
	}, nil))
	colours := map[bool]string{true: "dark", false: "light"}[s.dark]
	require.NoError(t, p.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": colours}}}, nil))
}

// script runs JavaScript in the page, waits for its promise, and returns its value as text.
func (p *tab) script(text string) (string, error) {
	var got struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.call("Runtime.evaluate", map[string]any{"expression": text, "awaitPromise": true, "returnByValue": true}, &got); err != nil {
		return "", err
	}
	if e := got.Exception; e != nil {
		return "", fmt.Errorf("%s %s", e.Text, e.Exception.Description)
	}
	return fmt.Sprint(got.Result.Value), nil
}

// eval returns the result of a script.
func (p *tab) eval(t *testing.T, script string) string {
	t.Helper()
	got, err := p.script(script)
	require.NoError(t, err, script)
	return got
}

// until waits until a script returns true.
func (p *tab) until(t *testing.T, script string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if got, err := p.script(script); err == nil && got == "true" {
			return
		}
		if time.Now().After(end) {
			require.Fail(t, "it has not come to this", "%s; the page says:\n%s", script, p.eval(t, "document.body.innerText"))
		}
	}
}

// text waits until the page shows a text in an element.
func (p *tab) text(t *testing.T, id, want string) {
	t.Helper()
	p.until(t, `document.getElementById("`+id+`").innerText.includes(`+"`"+want+"`)")
}

func (p *tab) click(t *testing.T, selector string) {
	t.Helper()
	p.eval(t, `document.querySelector("`+selector+`").click()`)
}

// key presses a key: "Enter" or "ArrowLeft".
func (p *tab) key(t *testing.T, key string) {
	t.Helper()
	code := map[string]int{"Enter": 13, "ArrowLeft": 37}[key]
	require.NotZero(t, code)
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if key == "Enter" {
		event["text"] = "\r"
	}
	require.NoError(t, p.call("Input.dispatchKeyEvent", event, nil))
	event["type"] = "keyUp"
	delete(event, "text")
	require.NoError(t, p.call("Input.dispatchKeyEvent", event, nil))
}
