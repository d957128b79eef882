//! What a server offers, and what a tool sees of the call it serves.

use crate::message::progress;
use crate::outbox::Outbox;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// What is served.
pub struct Server {
    /// Its name, as clients show it.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What a model is told about all tools together.
    pub instructions: &'static str,
    /// The tools, in the order in which they are listed.
    pub tools: Vec<Box<dyn Tool>>,
}

/// Something that can be asked for.
pub trait Tool: Send + Sync {
    /// What it is.
    fn describe(&self) -> Description;

    /// Does it, in a thread of its own. It comes back soon after [`Call::is_cancelled`] says so.
    fn call(&self, arguments: &Map<String, Value>, call: &Call<'_>) -> Answer;
}

/// A tool as it is listed.
#[derive(Clone, Debug)]
pub struct Description {
    /// What it is called by.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// When to use it, and what comes back: for a model.
    pub text: &'static str,
    /// The JSON schema of its arguments: an object's.
    pub input: Value,
    /// What it may do.
    pub effect: Effect,
}

/// What a tool may do to the world; clients ask their user by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads what is named and changes nothing.
    Reads,
    /// It runs commands that the client names: they may do anything that the user may.
    RunsCommands,
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// An object.
    Json(Value),
    /// Text.
    Text(String),
    /// It could not be done: why, for the model to do better.
    Failed(String),
}

/// A call while it is served.
pub struct Call<'a> {
    pub(crate) outbox: &'a Outbox,
    pub(crate) token: Option<Value>,
    pub(crate) cancelled: &'a AtomicBool,
}

impl Call<'_> {
    /// Whether the answer is no longer wanted: the client has taken the request back or is gone.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Tells a client that asked for it how far the call is. `done` grows from one telling to the next; `of` is
    /// what it will be at the end, where that is known.
    pub fn progress(&self, done: f64, of: Option<f64>, text: &str) {
        if let Some(token) = &self.token {
            // Where it can't be said the client is gone, and the answer will not be heard either.
            let _ = self.outbox.put(progress(token, done, of, text));
        }
    }
}
