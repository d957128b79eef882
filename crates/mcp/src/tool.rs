//! The tools of a server, and a tool's view of a call.

use crate::message::progress;
use crate::outbox::Outbox;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// A server.
pub struct Server {
    /// Its name, as clients show it.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Text for a model about all tools together.
    pub instructions: &'static str,
    /// The tools, in the order they are listed.
    pub tools: Vec<Box<dyn Tool>>,
}

/// A tool.
pub trait Tool: Send + Sync {
    /// Describes the tool.
    fn describe(&self) -> Description;

    /// Runs a call, in a thread of its own. Returns soon after [`Call::is_cancelled`] becomes true.
    fn call(&self, arguments: &Map<String, Value>, call: &Call<'_>) -> Answer;
}

/// The description of a tool.
#[derive(Clone, Debug)]
pub struct Description {
    /// The name that calls use.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Text for a model: when to use it, and what it returns.
    pub text: &'static str,
    /// The JSON schema of its arguments, an object.
    pub input: Value,
    /// Its effect on the world.
    pub effect: Effect,
}

/// A tool's effect on the world. Clients ask their user about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads what is named.
    Reads,
    /// It runs commands that the client names, with all rights of the user.
    RunsCommands,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// An object.
    Json(Value),
    /// Text.
    Text(String),
    /// A failure, with a reason that helps the model.
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
