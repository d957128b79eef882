//! Writes a gzipped pprof profile: a recording's file without the part that only systoll reads,
//! with columns for needless calls.

use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, Value};
use std::io::Write;
use systoll_model::{FileError, PprofColumn};

/// Writes the profile.
pub(crate) fn write(value: Value, judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let more = [
        PprofColumn {
            name: "needless_calls",
            unit: "count",
            values: judged.rows().map(|told| told.needless_calls).collect(),
        },
        PprofColumn {
            name: Value::Needless.name(),
            unit: "nanoseconds",
            values: judged.rows().map(|told| told.needless_ns).collect(),
        },
    ];
    judged.recording.write_pprof(out, &more, value.name()).map_err(|error| match error {
        FileError::Io(error) => ExportError::Io(error),
        error => ExportError::Recording(error),
    })
}
