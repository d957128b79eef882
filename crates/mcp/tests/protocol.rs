//! Tests the protocol as a client sees it: both forms, cancelled calls, and messages that no client
//! should send.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use systoll_mcp::{Answer, Call, Description, Effect, MAX_AT_ONCE, MAX_LINE, Server, Tool, answers, serve};

/// A tool that returns its arguments; it waits or fails if they say so.
struct Echo;

impl Tool for Echo {
    fn describe(&self) -> Description {
        let input = json!({"type": "object"});
        Description { name: "echo", title: "Echo", text: "Says it again", input, effect: Effect::RunsCommands }
    }

    fn call(&self, arguments: &Map<String, Value>, call: &Call<'_>) -> Answer {
        let mut step = 0.0;
        while arguments.contains_key("wait") && !call.is_cancelled() {
            step += 1.0;
            call.progress(step, None, "waiting");
            thread::sleep(Duration::from_millis(5));
        }
        match arguments.get("do").and_then(Value::as_str) {
            Some("panic") => panic!("as asked for"),
            Some("fail") => Answer::Failed("as asked for".into()),
            Some("text") => Answer::Text("two\nlines".into()),
            _ => Answer::Json(Value::Object(arguments.clone())),
        }
    }
}

fn server() -> Server {
    Server { name: "test", version: "1", instructions: "none", tools: vec![Box::new(Echo)] }
}

fn said(asked: &[Value]) -> Vec<Value> {
    let lines: String = asked.iter().map(|message| format!("{message}\n")).collect();
    lines_of(&answers(&server(), lines.as_bytes()))
}

fn lines_of(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn meta(revision: &str) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {}})
}

const GREETING: &str = "2025-06-18";

fn greeting() -> Value {
    request(0, "initialize", json!({"protocolVersion": GREETING, "capabilities": {}}))
}

#[test]
fn a_handshake_opens_the_older_way() {
    let call = |id, what: &str| request(id, "tools/call", json!({"name": "echo", "arguments": {"do": what}}));
    let all = said(&[
        request(1, "tools/list", json!({})),
        greeting(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "ping", json!({})),
        call(3, "say"),
        call(4, "text"),
        call(5, "fail"),
        request(6, "tools/call", json!({"name": "none"})),
        request(7, "resources/list", json!({})),
        request(8, "server/discover", json!({})),
    ]);
    assert_eq!(all[0]["error"]["code"], -32600, "no handshake yet");
    assert_eq!(all[1]["result"]["protocolVersion"], GREETING);
    assert_eq!(all[2], json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(all[3]["result"]["structuredContent"], json!({"do": "say"}));
    assert_eq!(all[3]["result"]["content"][0]["text"], "{\"do\":\"say\"}");
    assert_eq!(all[4]["result"], json!({"content": [{"type": "text", "text": "two\nlines"}]}));
    assert_eq!(all[5]["result"]["isError"], true);
    let codes: Vec<&Value> = all[6..].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32602, -32601, -32601]);
    let unknown = said(&[request(1, "initialize", json!({"protocolVersion": "1999-01-01"}))]);
    assert_eq!(unknown[0]["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn each_request_may_name_its_revision() {
    let with = |revision: &str| json!({"_meta": meta(revision)});
    let mut call = json!({"name": "echo", "arguments": {}});
    call["_meta"] = meta("2026-07-28");
    let all = said(&[
        request(1, "server/discover", with("2026-07-28")),
        request(2, "tools/list", with("2026-07-28")),
        request(3, "tools/call", call),
        request(4, "tools/list", with("2030-01-01")),
        request(5, "tools/list", json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})),
        request(6, "ping", with("2026-07-28")),
    ]);
    assert_eq!(all[0]["result"]["supportedVersions"], json!(["2026-07-28"]));
    for listed in &all[..2] {
        assert!(listed["result"]["ttlMs"].is_u64() && listed["result"]["cacheScope"] == "public", "{listed}");
    }
    for answer in &all[..3] {
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
    }
    let annotations = &all[1]["result"]["tools"][0]["annotations"];
    assert!(annotations["destructiveHint"] == true && annotations["readOnlyHint"] == false);
    let supported = json!({"supported": ["2026-07-28"], "requested": "2030-01-01"});
    assert_eq!((&all[3]["error"]["code"], &all[3]["error"]["data"]), (&json!(-32022), &supported));
    assert_eq!([&all[4]["error"]["code"], &all[5]["error"]["code"]], [-32602, -32601]);
}

#[test]
fn a_failing_tool_leaves_the_others_working() {
    let call = |id, what: &str| request(id, "tools/call", json!({"name": "echo", "arguments": {"do": what}}));
    let all = said(&[greeting(), call(1, "panic"), call(2, "say")]);
    assert_eq!(
        (&all[1]["result"]["isError"], &all[2]["result"]["structuredContent"]["do"]),
        (&json!(true), &json!("say"))
    );
}

/// A client on a socket, and the server's thread.
struct Client {
    to: UnixStream,
    from: BufReader<UnixStream>,
    server: thread::JoinHandle<io::Result<()>>,
}

impl Client {
    fn new() -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let from = BufReader::new(theirs.try_clone().unwrap());
        let server = thread::spawn(move || serve(&server(), from, theirs, &|| false));
        ours.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut client = Self { from: BufReader::new(ours.try_clone().unwrap()), to: ours, server };
        client.say(&greeting());
        assert_eq!(client.hear()["result"]["protocolVersion"], GREETING);
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        io::BufRead::read_line(&mut self.from, &mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn waiting(&mut self, id: i64) {
        let params = json!({"name": "echo", "arguments": {"wait": 1}, "_meta": {"progressToken": id}});
        self.say(&request(id, "tools/call", params));
    }
}

#[test]
fn a_call_that_is_taken_back_is_not_answered() {
    let mut client = Client::new();
    client.waiting(1);
    let told = client.hear();
    assert_eq!((&told["method"], &told["params"]["progressToken"]), (&json!("notifications/progress"), &json!(1)));
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    client.say(&request(2, "ping", json!({})));
    let end = Instant::now() + Duration::from_secs(20);
    let mut progress = 0;
    loop {
        assert!(Instant::now() < end);
        let heard = client.hear();
        if heard["method"] == "notifications/progress" {
            progress += 1;
            continue;
        }
        assert_eq!(heard["id"], 2, "{heard}");
        break;
    }
    // Earlier messages may still arrive. After that there is silence, and the id is free again.
    client.say(&request(3, "tools/call", json!({"name": "echo", "arguments": {}})));
    while client.hear()["id"] != 3 {
        progress += 1;
        assert!(progress < 10_000);
    }
}

#[test]
fn only_so_many_calls_are_served_at_once() {
    let mut client = Client::new();
    for id in 1..=MAX_AT_ONCE as i64 + 1 {
        client.waiting(id);
    }
    client.waiting(1);
    let mut refused = Vec::new();
    while refused.len() < 2 {
        let heard = client.hear();
        if heard.get("error").is_some() {
            refused.push((heard["id"].clone(), heard["error"]["code"].clone()));
        }
    }
    assert_eq!(refused, [(json!(MAX_AT_ONCE + 1), json!(-32000)), (json!(1), json!(-32000))]);
}

#[test]
fn the_end_of_the_input_ends_the_server() {
    let mut client = Client::new();
    client.waiting(1);
    client.hear();
    client.to.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    client.from.read_to_string(&mut rest).unwrap();
    client.server.join().unwrap().unwrap();
    assert!(lines_of(&rest).iter().all(|heard| heard["method"] == "notifications/progress"));
}

#[test]
fn a_client_that_reads_nothing_does_not_keep_the_server() {
    static OVER: AtomicBool = AtomicBool::new(false);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let from = BufReader::new(theirs.try_clone().unwrap());
    let server = thread::spawn(move || serve(&server(), from, theirs, &|| OVER.load(Ordering::Relaxed)));
    let mut to = ours.try_clone().unwrap();
    writeln!(to, "{}", greeting()).unwrap();
    let params = json!({"name": "echo", "arguments": {"wait": 1}, "_meta": {"progressToken": "x".repeat(100_000)}});
    writeln!(to, "{}", request(1, "tools/call", params)).unwrap();
    thread::sleep(Duration::from_millis(200));
    OVER.store(true, Ordering::Relaxed);
    let began = Instant::now();
    server.join().unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    drop(ours);
}

/// Generates values that no client sends.
fn any_value() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("initialize".to_owned()),
        Just("tools/call".to_owned()),
        Just("echo".to_owned()),
        Just("2.0".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let keys = prop_oneof![
        Just("jsonrpc".to_owned()),
        Just("id".to_owned()),
        Just("method".to_owned()),
        Just("params".to_owned()),
        Just("name".to_owned()),
        Just("arguments".to_owned()),
        Just("_meta".to_owned()),
        any::<String>(),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Generates requests with some of their parts replaced.
fn any_request() -> impl Strategy<Value = Value> {
    let parts = ["jsonrpc", "id", "method", "params"];
    let changes = prop::collection::vec((prop::sample::select(parts.to_vec()), any_value()), 0..2);
    let whole = prop::sample::select(vec![
        greeting(),
        request(7, "tools/call", json!({"name": "echo", "arguments": {"a": 1}})),
        request(8, "tools/list", json!({"_meta": meta("2026-07-28")})),
    ]);
    (whole, changes).prop_map(|(mut message, changes)| {
        changes.into_iter().for_each(|(part, value)| message[part] = value);
        message
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_has_one_answer(messages in prop::collection::vec(any_request(), 1..8)) {
        let is_request = |m: &&Value| m.get("id").is_some();
        let asked = messages.iter().filter(is_request).count();
        let heard = said(&messages);
        // A message without an id is answered only if it is invalid.
        prop_assert!(heard.len() >= asked && heard.len() <= messages.len());
        for answer in heard {
            prop_assert!(answer["jsonrpc"] == "2.0" && answer.get("result").is_some() != answer.get("error").is_some());
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let heard = lines_of(&answers(&server(), &bytes));
        prop_assert!(heard.iter().all(|answer| answer.get("error").is_some()));
    }
}

#[test]
fn a_line_without_end_is_passed_over() {
    let mut asked = vec![b'['; 3 * MAX_LINE];
    asked.extend_from_slice(format!("\n{}\n", greeting()).as_bytes());
    let all = lines_of(&answers(&server(), &asked));
    assert_eq!((&all[0]["error"]["code"], &all[1]["result"]["protocolVersion"]), (&json!(-32600), &json!(GREETING)));
}
