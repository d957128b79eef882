//! The tools of a server, and a tool's view of a call.

use crate::message::progress;
use crate::outbox::Outbox;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// A server, as its clients see it.
pub struct Server {
    /// Name of the server, as clients show it.
    pub name: &'static str,
    /// Version of the server.
    pub version: &'static str,
    /// Text for a model about all tools together.
    pub instructions: &'static str,
    /// The tools, in the order in which they are listed.
    pub tools: Vec<Box<dyn Tool>>,
}

/// A tool that clients can call.
pub trait Tool: Send + Sync {
    /// Returns the description of the tool.
    fn describe(&self) -> Description;

    /// Runs a call, in a thread of its own. Returns soon after [`Call::is_cancelled`] becomes true.
    fn call(&self, arguments: &Map<String, Value>, call: &Call<'_>) -> Answer;
}

/// The description of a tool.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the tool, by which it is called.
    pub name: &'static str,
    /// Name of the tool for people.
    pub title: &'static str,
    /// Text for a model: when to use the tool, and what it returns.
    pub text: &'static str,
    /// JSON schema of the arguments, an object.
    pub input: Value,
    /// Effect of the tool on the world.
    pub effect: Effect,
}

/// A tool's effect on the world. Clients ask their user about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The tool only reads the files that the arguments name.
    Reads,
    /// The tool runs commands that the client names, with all rights of the user.
    RunsCommands,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result is an object.
    Json(Value),
    /// The result is text.
    Text(String),
    /// The call failed, for a reason that helps the model.
    Failed(String),
}

/// A call in progress.
pub struct Call<'a> {
    pub(crate) outbox: &'a Outbox,
    pub(crate) token: Option<Value>,
    pub(crate) cancelled: &'a AtomicBool,
}

impl Call<'_> {
    /// Returns true if the answer is no longer wanted: the client cancelled the request or is gone.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Reports progress to a client that asked for it. `done` must grow; `of` is its final value,
    /// if that is known.
    pub fn progress(&self, done: f64, of: Option<f64>, text: &str) {
        if let Some(token) = &self.token {
            // If this fails, the client is gone, and will not get the answer either.
            let _ = self.outbox.put(progress(token, done, of, text));
        }
    }
}
