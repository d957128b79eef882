//! Messages of an agent's client to `systoll mcp`.

use serde_json::{Map, Value, json};
use systoll_mcp::{Answer, Call, Description, Effect, Server, Tool, answers};

struct Echo;

impl Tool for Echo {
    fn describe(&self) -> Description {
        let input = json!({"type": "object"});
        Description { name: "run", title: "Echo", text: "Says it again", input, effect: Effect::Reads }
    }

    fn call(&self, arguments: &Map<String, Value>, call: &Call<'_>) -> Answer {
        call.progress(1.0, Some(2.0), "half");
        Answer::Json(Value::Object(arguments.clone()))
    }
}

/// Feeds the server a client's lines. Each gets at most one answer, which is one line of JSON.
pub fn mcp(data: &[u8]) {
    let server = Server { name: "fuzz", version: "0", instructions: "", tools: vec![Box::new(Echo)] };
    let said = answers(&server, data);
    let mut results = 0;
    for line in said.lines() {
        let message: Value = serde_json::from_str(line).expect("a line is a message");
        assert_eq!(message["jsonrpc"], "2.0");
        results += usize::from(message.get("id").is_some());
    }
    assert!(results <= data.split(|b| *b == b'\n').count(), "one answer a line");
}

/// Returns messages of clients of both versions of the protocol.
pub fn clients() -> Vec<Vec<u8>> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": "t",
    });
    let call = json!({"name": "run", "arguments": {"command": ["ls"]}, "_meta": {"progressToken": 1}});
    let old = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": call}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}),
    ];
    let new = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "run", "_meta": meta}}),
    ];
    let lines = |all: &[Value]| all.iter().map(|message| format!("{message}\n")).collect::<String>().into_bytes();
    vec![lines(&old), lines(&new)]
}
