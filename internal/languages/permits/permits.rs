//! Calls something within a limit: permits 127.0.0.1:7070
//!
//! It needs no crate. A program that has an HTTP client and serde uses these.

use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

struct Permits {
    address: String,
}

impl Permits {
    /// Waits for tokens, for at most so many seconds, and returns the name of a permit.
    fn acquire(&self, tokens: u32, seconds: u32) -> Result<String> {
        let body = format!(r#"{{"tokens":{tokens},"timeout_seconds":{seconds}}}"#);
        self.post("/v1/acquire", &body, seconds).map(|answer| field(&answer, "permit"))
    }

    /// Ends a permit with what the call really cost.
    fn settle(&self, permit: &str, used: u32) -> Result<()> {
        let body = format!(r#"{{"permit":"{permit}","used":{used}}}"#);
        self.post("/v1/settle", &body, 0).map(|_| ())
    }

    /// Makes a call, and returns the body of its answer, or its reason as an error.
    fn post(&self, path: &str, body: &str, wait: u32) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(u64::from(wait) + 15)))?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = String::new();
        stream.take(1 << 20).read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.1 200 ") {
            return Ok(answer);
        }
        Err(Error::other(field(&answer, "reason")))
    }
}

/// A text in an object.
fn field(json: &str, name: &str) -> String {
    let key = format!("\"{name}\":\"");
    let rest = json.split_once(&key).map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or("").to_string()
}

fn main() -> Result<()> {
    let limit = Permits { address: std::env::args().nth(1).expect("an address") };
    let permit = limit.acquire(1, 10)?;
    if let Err(reason) = limit.acquire(1, 0) {
        println!("refused: {reason}");
    }
    limit.settle(&permit, 1)?;
    limit.settle(&limit.acquire(1, 10)?, 1)?;
    println!("done");
    Ok(())
}
