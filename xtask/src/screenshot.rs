//! Takes pictures of a browser's window as PNG files: pages and flame graphs of real runs, drawn by
//! headless Chromium.

use crate::shell::{Run, pictures};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A picture in docs/ of a browser's window.
pub(crate) struct Screenshot {
    pub(crate) file: &'static str,
    /// Command after `systoll run … --`, which is recorded as `a.systoll`.
    command: &'static str,
    /// Words after `systoll` that write the file to be shown.
    written: &'static str,
    /// Name of the written file.
    opened: &'static str,
    is_dark: bool,
    width: u32,
    height: u32,
}

const PAGE: Screenshot = Screenshot {
    file: "page.png",
    command: "./app",
    written: "report --html -o page.html a.systoll",
    opened: "page.html",
    is_dark: false,
    width: 1100,
    height: 1230,
};

pub(crate) const SCREENSHOTS: [Screenshot; 3] = [
    PAGE,
    Screenshot { file: "page-dark.png", is_dark: true, ..PAGE },
    Screenshot {
        file: "flamegraph.png",
        command: "/usr/bin/python3 -c 'import json, email.message, http.client'",
        written: "export --format flamegraph -o flame.svg a.systoll",
        opened: "flame.svg",
        is_dark: false,
        width: 1200,
        height: 680,
    },
];

/// Bytes of a picture, at most: everyone who clones the repository stores it.
pub(crate) const MOST: u64 = 300_000;

/// Draws all screenshots, in a folder that has the program `app`.
pub(crate) fn write_all(systoll: &Path, folder: &Path) -> Result<()> {
    for shot in &SCREENSHOTS {
        let run = Run { systoll, folder, python: None };
        run.shell(&format!("\"$0\" run -q --save a.systoll -- {} > /dev/null", shot.command))?;
        run.shell(&format!("\"$0\" {}", shot.written))?;
        draw(shot, folder)?;
    }
    Ok(())
}

fn draw(shot: &Screenshot, folder: &Path) -> Result<()> {
    let file = pictures().join(shot.file);
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    if shot.is_dark {
        chromium.arg("--force-dark-mode");
    }
    chromium.arg(format!("--user-data-dir={}", folder.join("chromium").display()));
    chromium.arg(format!("--window-size={},{}", shot.width, shot.height));
    chromium.arg(format!("--screenshot={}", file.display()));
    chromium.arg(format!("file://{}", folder.join(shot.opened).display()));
    let said = chromium.output().context("there is no chromium")?;
    if !said.status.success() {
        bail!("chromium does not draw {}: {}", shot.file, String::from_utf8_lossy(&said.stderr));
    }
    let size = std::fs::metadata(&file).with_context(|| format!("chromium drew no {}", shot.file))?.len();
    if size > MOST {
        bail!("{} has {size} bytes, {MOST} are the most", shot.file);
    }
    Ok(())
}
