//! Kinds of requests that a server was seen to receive.

use std::sync::Arc;

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestProtocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http,
    /// Redis.
    Redis,
    /// PostgreSQL.
    Postgres,
    /// memcached's text protocol.
    Memcached,
    /// TLS: requests in it can't be read.
    Tls,
    /// HTTP/2, whose requests are not read.
    Http2,
    /// None that is known: the bytes begin no request.
    None,
}

impl RequestProtocol {
    /// All protocols.
    pub const ALL: [Self; 7] =
        [Self::Http, Self::Redis, Self::Postgres, Self::Memcached, Self::Tls, Self::Http2, Self::None];

    /// Returns its name in recordings and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
            Self::Memcached => "memcached",
            Self::Tls => "TLS",
            Self::Http2 => "HTTP/2",
            Self::None => "none",
        }
    }

    /// Returns the protocol with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Returns true if requests of this protocol are told apart.
    #[must_use]
    pub fn has_requests(self) -> bool {
        matches!(self, Self::Http | Self::Redis | Self::Postgres | Self::Memcached)
    }
}

/// A kind of request, without any value of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKind {
    /// Protocol of the request.
    pub protocol: RequestProtocol,
    /// Name of the kind: `GET /orders/N`, `SELECT orders`; empty if the protocol has no requests.
    pub name: Arc<str>,
}

/// Index into [`crate::Recording::request_kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKindId(pub u32);

/// Receives of a row that were looked at one by one and began requests of one kind, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReceivedCalls {
    /// The row whose calls received.
    pub row: crate::RowId,
    /// The kind of what they received.
    pub kind: RequestKindId,
    /// Number of receives for which each stands: one if every receive was looked at; more if each was drawn at random
    /// from so many that follow one another.
    pub stands_for: u64,
    /// Number of receives that were looked at.
    pub receives: u64,
}
