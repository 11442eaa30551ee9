//! A handler of numaflow-rs that answers with what it was given, for the tests.
//!
//!     handler KIND SOCKET SERVER_INFO

use numaflow::shared::ServerExtras;
use numaflow::{batchmap, map, mapstream, sink};
use tokio::sync::mpsc;
use tonic::async_trait;

fn seen(value: Vec<u8>) -> Vec<u8> {
    [b"rust ".to_vec(), value].concat()
}

struct Echo;

#[async_trait]
impl map::Mapper for Echo {
    async fn map(&self, input: map::MapRequest) -> Vec<map::Message> {
        let mut out = map::Message::new(seen(input.value)).with_keys(input.keys);
        if let Some(tokens) = input.headers.get("tokens") {
            out = out.with_tags(vec![tokens.clone()]);
        }
        vec![out]
    }
}

#[async_trait]
impl batchmap::BatchMapper for Echo {
    async fn batchmap(&self, mut input: mpsc::Receiver<batchmap::Datum>) -> Vec<batchmap::BatchResponse> {
        let mut responses = Vec::new();
        while let Some(datum) = input.recv().await {
            let mut response = batchmap::BatchResponse::from_id(datum.id);
            response.append(batchmap::Message::new(seen(datum.value)).with_keys(datum.keys));
            responses.push(response);
        }
        responses
    }
}

#[async_trait]
impl mapstream::MapStreamer for Echo {
    async fn map_stream(&self, input: mapstream::MapStreamRequest, tx: mpsc::Sender<mapstream::Message>) {
        for _ in 0..3 {
            let out = mapstream::Message::new(seen(input.value.clone())).with_keys(input.keys.clone());
            if tx.send(out).await.is_err() {
                return;
            }
        }
    }
}

#[async_trait]
impl sink::Sinker for Echo {
    async fn sink(&self, mut input: mpsc::Receiver<sink::SinkRequest>) -> Vec<sink::Response> {
        let mut responses = Vec::new();
        while let Some(datum) = input.recv().await {
            responses.push(match datum.value.as_slice() {
                b"fail" => sink::Response::failure(datum.id, "as asked".to_string()),
                _ => sink::Response::ok(datum.id),
            });
        }
        responses
    }
}

macro_rules! serve {
    ($server:expr, $socket:expr, $info:expr) => {
        $server.with_socket_file($socket).with_server_info_file($info).start().await
    };
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, socket, info] = args.as_slice() else {
        return Err("usage: handler KIND SOCKET SERVER_INFO".into());
    };
    match kind.as_str() {
        "map" => serve!(map::Server::new(Echo), socket, info),
        "batchmap" => serve!(batchmap::Server::new(Echo), socket, info),
        "mapstream" => serve!(mapstream::Server::new(Echo), socket, info),
        "sink" => serve!(sink::Server::new(Echo), socket, info),
        _ => Err(format!("kind is {kind}, allowed: map, batchmap, mapstream, sink").into()),
    }
}
