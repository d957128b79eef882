//! Writes requests of OTLP, OpenTelemetry's protocol: counters of a box (`box_metrics/otlp.rs`), and profiles.

mod profiles;
pub(crate) mod proto;

pub use profiles::OtlpProfiles;

use proto::{AnyValue, KeyValue, Resource, Scope};

pub(crate) fn text_value(text: &str) -> Option<AnyValue> {
    Some(AnyValue { string_value: Some(text.to_owned()) })
}

pub(crate) fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: text_value(value) }
}

pub(crate) fn resource(service: &str, host: &str) -> Option<Resource> {
    Some(Resource { attributes: vec![attribute("service.name", service), attribute("host.name", host)] })
}

pub(crate) fn scope() -> Option<Scope> {
    Some(Scope { name: "systoll".into(), version: env!("CARGO_PKG_VERSION").into() })
}
