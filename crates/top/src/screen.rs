//! Takes over the terminal, draws on it, and gives it back.

use crate::keyboard::Keyboard;
use crate::state::{Event, State};
use crate::view::{draw, page_height};
use crossterm::cursor::Show;
use crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, KeyCode, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout};
use std::time::Duration;

/// Number of lines by which the wheel moves.
const WHEEL: i16 = 3;

/// An act of the user at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// An event for the state.
    Event(Event),
    /// Ctrl-C.
    Interrupt,
    /// A new size of the window, or an event without a meaning.
    Other,
}

/// The terminal, while it shows the screen. It is given back when this is dropped.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    keyboard: Keyboard,
    has_mouse: bool,
}

impl Screen {
    /// Takes over the terminal on standard output.
    ///
    /// # Errors
    /// If there is none.
    pub fn open() -> io::Result<Self> {
        let keyboard = Keyboard::open()?;
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal, keyboard, has_mouse: false }),
            Err(e) => {
                restore_terminal();
                Err(e)
            }
        }
    }

    /// Draws the state.
    ///
    /// # Errors
    ///
    /// If the terminal is gone.
    pub fn draw(&mut self, state: &mut State) -> io::Result<()> {
        if state.has_mouse != self.has_mouse {
            self.has_mouse = state.has_mouse;
            match self.has_mouse {
                true => execute!(io::stdout(), EnableMouseCapture)?,
                false => execute!(io::stdout(), DisableMouseCapture)?,
            }
        }
        self.terminal.draw(|frame| {
            let area = frame.area();
            state.resize(area.width, area.height);
            let lines = draw(state, area, frame.buffer_mut());
            state.note_length(lines, page_height(area.height));
        })?;
        Ok(())
    }

    /// Waits for something that the user does, at most for `time`.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn wait(&self, time: Duration) -> io::Result<Option<Did>> {
        // crossterm goes on reading a terminal that is gone, and never returns: it is asked only about one that is there.
        for time in [Duration::ZERO, time] {
            let may_read = self.keyboard.wait(time)?;
            if may_read && event::poll(Duration::ZERO)? {
                return Ok(Some(did(&event::read()?)));
            }
        }
        Ok(None)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Gives the terminal back as it was. May be called again.
pub fn restore_terminal() {
    // There is nobody to tell if the terminal is gone.
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
}

fn did(event: &event::Event) -> Did {
    match event {
        event::Event::Key(key) if key.kind != KeyEventKind::Release => {
            let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('c') if has_control => Did::Interrupt,
                KeyCode::Char(_) if has_control => Did::Other,
                KeyCode::Char(c) => Did::Event(Event::Char(c)),
                KeyCode::Enter => Did::Event(Event::Enter),
                KeyCode::Esc => Did::Event(Event::Escape),
                KeyCode::Backspace | KeyCode::Left => Did::Event(Event::Backspace),
                KeyCode::Up => Did::Event(Event::Up),
                KeyCode::Down => Did::Event(Event::Down),
                KeyCode::PageUp => Did::Event(Event::PageUp),
                KeyCode::PageDown => Did::Event(Event::PageDown),
                KeyCode::Home => Did::Event(Event::Home),
                KeyCode::End => Did::Event(Event::End),
                _ => Did::Other,
            }
        }
        event::Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Did::Event(Event::Click(mouse.column, mouse.row)),
            MouseEventKind::ScrollDown => Did::Event(Event::Wheel(WHEEL)),
            MouseEventKind::ScrollUp => Did::Event(Event::Wheel(-WHEEL)),
            _ => Did::Other,
        },
        _ => Did::Other,
    }
}
