//! Interprets requests: finds out which revision of the protocol they use, and answers those that
//! call no tool.

use crate::message::{Id, Refusal, short};
use crate::tool::{Answer, Description, Effect, Server};
use serde_json::{Map, Value, json};

/// The revision in which each request names the revision.
pub const REVISION: &str = "2026-07-28";
/// The revisions that start with a handshake, oldest first.
pub const HANDSHAKE_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// Time that a client may cache lists, in milliseconds: they only change with another version of
/// systoll.
const KEEP_MS: u64 = 3_600_000;

/// The rules that a request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// The request follows a handshake, or is one.
    Handshake,
    /// The request names its revision.
    Stateless,
}

/// The state of a session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    greeted: bool,
}

/// The server's reaction to a request.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The server returns this answer.
    Result(Value),
    /// The server calls a tool.
    Call { tool: usize, arguments: Map<String, Value>, token: Option<Value>, era: Era },
}

impl Session {
    /// Returns the answer, or the tool to call.
    pub(crate) fn request(
        &mut self,
        server: &Server,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<Wanted, Refusal> {
        let era = self.era(method, &params)?;
        let stateless = era == Era::Stateless;
        let result = match method {
            "initialize" => self.greet(server, &params),
            "server/discover" if stateless => listing(discovered(server)),
            "ping" if !stateless => json!({}),
            "tools/list" if params.contains_key("cursor") => {
                return Err(Refusal::params("all tools are listed at once: no cursor was given out"));
            }
            "tools/list" => {
                let listed: Vec<Value> = server.tools.iter().map(|tool| described(&tool.describe())).collect();
                let listed = json!({"tools": listed});
                if stateless { listing(listed) } else { listed }
            }
            "tools/call" => return called(server, &mut params, era),
            _ => return Err(Refusal::no_method(method)),
        };
        Ok(Wanted::Result(stamped(server, result, era)))
    }

    fn era(&self, method: &str, params: &Map<String, Value>) -> Result<Era, Refusal> {
        let meta = params.get("_meta");
        match meta.and_then(|meta| meta.get(REVISION_KEY)) {
            _ if method == "initialize" => Ok(Era::Handshake),
            None if self.greeted || method == "ping" => Ok(Era::Handshake),
            None => Err(Refusal::invalid("no revision of the protocol: name it in _meta, or initialize first")),
            Some(Value::String(revision)) if revision != REVISION => Err(Refusal::revision(revision, &[REVISION])),
            Some(Value::String(_)) if meta.is_some_and(|meta| meta[CAPABILITIES_KEY].is_object()) => Ok(Era::Stateless),
            Some(Value::String(_)) => Err(Refusal::params(format!("_meta lacks {CAPABILITIES_KEY}"))),
            Some(_) => Err(Refusal::params(format!("{REVISION_KEY} is a text"))),
        }
    }

    fn greet(&mut self, server: &Server, params: &Map<String, Value>) -> Value {
        self.greeted = true;
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let spoken = HANDSHAKE_REVISIONS.into_iter().find(|r| asked == Some(r)).unwrap_or(HANDSHAKE_REVISIONS[3]);
        json!({
            "protocolVersion": spoken,
            "capabilities": {"tools": {}},
            "serverInfo": named(server),
            "instructions": server.instructions,
        })
    }
}

fn discovered(server: &Server) -> Value {
    json!({
        "supportedVersions": [REVISION],
        "capabilities": {"tools": {}},
        "instructions": server.instructions,
    })
}

/// Marks a result as cacheable.
fn listing(mut result: Value) -> Value {
    if let Some(result) = result.as_object_mut() {
        result.insert("ttlMs".into(), KEEP_MS.into());
        result.insert("cacheScope".into(), "public".into());
    }
    result
}

fn named(server: &Server) -> Value {
    json!({"name": server.name, "version": server.version})
}

/// Adds the fields that a result needs in its era.
pub(crate) fn stamped(server: &Server, mut result: Value, era: Era) -> Value {
    if let (Era::Stateless, Some(result)) = (era, result.as_object_mut()) {
        result.insert("resultType".into(), "complete".into());
        result.insert("_meta".into(), json!({SERVER_KEY: named(server)}));
    }
    result
}

fn described(tool: &Description) -> Value {
    let annotations = match tool.effect {
        Effect::Reads => json!({
            "title": tool.title, "readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false,
        }),
        Effect::RunsCommands => json!({
            "title": tool.title, "readOnlyHint": false, "destructiveHint": true,
            "idempotentHint": false, "openWorldHint": true,
        }),
    };
    json!({
        "name": tool.name, "title": tool.title, "description": tool.text,
        "inputSchema": tool.input, "annotations": annotations,
    })
}

fn called(server: &Server, params: &mut Map<String, Value>, era: Era) -> Result<Wanted, Refusal> {
    let Some(Value::String(name)) = params.get("name") else {
        return Err(Refusal::params("a call names its tool"));
    };
    let tool = server.tools.iter().position(|tool| tool.describe().name == name);
    let tool = tool.ok_or_else(|| Refusal::params(format!("there is no tool {}", short(name))))?;
    let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
    let token = token.filter(|token| Id::of(token).is_some()).cloned();
    let arguments = match params.remove("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(Refusal::params("arguments is an object")),
    };
    Ok(Wanted::Call { tool, arguments, token, era })
}

/// Converts a tool's answer to a result.
pub(crate) fn result_of(answer: Answer) -> Value {
    let text = |text: String| json!([{"type": "text", "text": text}]);
    match answer {
        // The object is also sent as text, since clients of revisions before 2025-06-18 know
        // nothing else.
        Answer::Json(value) => json!({"content": text(value.to_string()), "structuredContent": value}),
        Answer::Text(said) => json!({"content": text(said)}),
        Answer::Failed(why) => json!({"content": text(why), "isError": true}),
    }
}
