//! JSON-RPC 2.0: parses lines into messages, and writes answers.

use serde_json::{Map, Value, json};

/// A request's id, as the client chose it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(String);

impl Id {
    /// Returns an id from a text or a whole number; nothing else is an id.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        (value.is_string() || value.is_i64() || value.is_u64()).then(|| Self(value.to_string()))
    }

    /// Returns the id in the form in which the client wrote it, to send it back.
    fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }
}

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    /// A message that expects an answer.
    Request { id: Id, method: String, params: Map<String, Value> },
    /// A message that expects no answer.
    Notification { method: String, params: Map<String, Value> },
    /// An answer, although the server asked nothing.
    Answer,
    /// An invalid message. The answer says so, to the request if its id is known.
    Wrong(Option<Id>, Refusal),
}

/// The reason why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    code: i64,
    text: String,
    data: Option<Value>,
}

impl Refusal {
    pub(crate) fn parse(text: impl Into<String>) -> Self {
        Self { code: -32700, text: text.into(), data: None }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { code: -32600, text: text.into(), data: None }
    }

    pub(crate) fn no_method(method: &str) -> Self {
        Self { code: -32601, text: format!("there is no method {}", short(method)), data: None }
    }

    pub(crate) fn params(text: impl Into<String>) -> Self {
        Self { code: -32602, text: text.into(), data: None }
    }

    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self { code: -32603, text: text.into(), data: None }
    }

    /// Creates the refusal of a call when too many are served at once. Its code is from the range
    /// for servers.
    pub(crate) fn busy(text: impl Into<String>) -> Self {
        Self { code: -32000, text: text.into(), data: None }
    }

    pub(crate) fn revision(requested: &str, supported: &[&str]) -> Self {
        let data = json!({"supported": supported, "requested": short(requested)});
        Self { code: -32022, text: "this revision of the protocol is not spoken here".into(), data: Some(data) }
    }
}

/// Shortens a client's text for a sentence of ours.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 80;
    text.chars().take(MOST).collect()
}

/// Parses a line into a message.
pub(crate) fn read(line: &[u8]) -> Message {
    let mut object = match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => object,
        Ok(Value::Array(_)) => return Message::Wrong(None, Refusal::invalid("one message a line: no batches")),
        Ok(_) => return Message::Wrong(None, Refusal::invalid("a message is an object")),
        Err(e) => return Message::Wrong(None, Refusal::parse(format!("no JSON: {e}"))),
    };
    let id = object.get("id").map(Id::of);
    let wrong = |text: &str| Message::Wrong(id.clone().flatten(), Refusal::invalid(text));
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return wrong("jsonrpc is not \"2.0\"");
    }
    let method = match object.get("method") {
        None if object.contains_key("result") || object.contains_key("error") => return Message::Answer,
        Some(Value::String(method)) => method.clone(),
        _ => return wrong("a request names its method"),
    };
    let params = match object.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return wrong("params is an object"),
    };
    match id {
        None => Message::Notification { method, params },
        Some(None) => Message::Wrong(None, Refusal::invalid("an id is a text or a whole number")),
        Some(Some(id)) => Message::Request { id, method, params },
    }
}

/// Writes the line that answers a request, with its end.
pub(crate) fn answer(id: Option<&Id>, result: Result<Value, Refusal>) -> Vec<u8> {
    let id = id.map_or(Value::Null, Id::value);
    let message = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Refusal { code, text, data: None }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
        }
        Err(Refusal { code, text, data }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, "data": data}})
        }
    };
    line(&message)
}

/// Writes the line that reports a call's progress.
pub(crate) fn progress(token: &Value, done: f64, of: Option<f64>, text: &str) -> Vec<u8> {
    let mut params = json!({"progressToken": token, "progress": done, "message": text});
    if let (Some(of), Some(params)) = (of, params.as_object_mut()) {
        params.insert("total".into(), of.into());
    }
    line(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
}

/// Returns the message as a line, with its end. JSON has no other line ends: strings contain them
/// escaped.
fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Option<i64> {
        match read(line.as_bytes()) {
            Message::Wrong(_, refusal) => Some(refusal.code),
            _ => None,
        }
    }

    #[test]
    fn other_json_is_refused() {
        assert_eq!(refused("{"), Some(-32700));
        assert_eq!(refused(r#"{"a": "\ud800"}"#), Some(-32700));
        assert_eq!(refused(&"[".repeat(100_000)), Some(-32700));
        for wrong in [
            "[]",
            "1",
            r#"{"id": 1, "method": "a"}"#,
            r#"{"jsonrpc": "2.0", "id": 1}"#,
            r#"{"jsonrpc": "2.0", "id": 1.5, "method": "a"}"#,
            r#"{"jsonrpc": "2.0", "id": null, "method": "a"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": []}"#,
        ] {
            assert_eq!(refused(wrong), Some(-32600), "{wrong}");
        }
        assert!(matches!(read(br#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#), Message::Answer));
    }

    #[test]
    fn an_id_comes_back_as_it_was() {
        for id in ["1", "-3", "18446744073709551615", r#""a\nb""#] {
            let line = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "method": "a"}}"#);
            let Message::Request { id: read, .. } = read(line.as_bytes()) else { panic!("{line}") };
            let said = String::from_utf8(answer(Some(&read), Ok(json!({})))).unwrap();
            assert_eq!(said, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"));
        }
    }
}
