//! Serves tools to agents by the Model Context Protocol (MCP), over two streams.
//!
//! Both forms of the protocol are supported: the handshake of the revisions up to 2025-11-25, and
//! that of 2026-07-28, in which each request names its revision. One line is one message (JSON-RPC
//! 2.0).
//!
//! Invariant: for any input, each request gets exactly one line of JSON, memory is bounded, and serving ends when the
//! input does. Nothing here knows what the tools do.
//!
//! No existing crate is used: for five tools over one pair of streams, `rmcp` 3.9 would need 29 crates for which
//! systoll has no other use, an asynchronous run-time among them (docs/develop/decisions.md has the figures).
//!
//! ```
//! use serde_json::{Map, Value, json};
//! use systoll_mcp::{Answer, Call, Description, Effect, Server, Tool};
//!
//! struct Echo;
//! impl Tool for Echo {
//!     fn describe(&self) -> Description {
//!         let input = json!({"type": "object", "properties": {"word": {"type": "string"}}});
//!         Description { name: "echo", title: "Echo", text: "Says it again", input, effect: Effect::Reads }
//!     }
//!     fn call(&self, arguments: &Map<String, Value>, _: &Call<'_>) -> Answer {
//!         Answer::Json(json!({"word": arguments.get("word")}))
//!     }
//! }
//!
//! let server = Server { name: "echo", version: "1.0", instructions: "Shout.", tools: vec![Box::new(Echo)] };
//! let asked = concat!(
//!     r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}"#, "\n",
//!     r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}"#, "\n",
//! );
//! let said = systoll_mcp::answers(&server, asked.as_bytes());
//! let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
//! assert_eq!(said[0]["result"]["protocolVersion"], "2025-11-25");
//! assert_eq!(said[1]["result"]["tools"][0]["name"], "echo");
//! ```
#![forbid(unsafe_code)]

mod calls;
mod lines;
mod message;
mod outbox;
mod serve;
mod session;
mod tool;

pub use lines::MAX_LINE;
pub use serve::{MAX_AT_ONCE, answers, serve};
pub use session::{HANDSHAKE_REVISIONS, REVISION};
pub use tool::{Answer, Call, Description, Effect, Server, Tool};
