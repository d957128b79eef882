//! Holds the user's choices, which keys and mouse change.

use crate::geometry::{Areas, Column, Contents};
use crate::history::{History, Interval, Judged};
use crate::table::{Choice, Group, GroupBy, SortBy, TableLine, lines};
use crate::tally::Tally;
use ratatui::layout::Rect;

/// An act with the keyboard or the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A character.
    Char(char),
    /// The key that ends a line.
    Enter,
    /// The key that leaves something.
    Escape,
    /// The key that takes a character back.
    Backspace,
    /// Go up by one line.
    Up,
    /// Go down by one line.
    Down,
    /// Go up by one screen.
    PageUp,
    /// Go down by one screen.
    PageDown,
    /// Go to the first line.
    Home,
    /// Go to the last line.
    End,
    /// The mouse's first button, at a column and a line from 0.
    Click(u16, u16),
    /// A turn of the mouse's wheel, lines down.
    Wheel(i16),
}

/// The page that is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// The table.
    #[default]
    Table,
    /// One line of the table: callers, stacks, a window, its finding.
    Detail(Group),
    /// All findings with their cures, and rounds.
    Findings,
    /// The keys.
    Help,
}

/// The way in which signs are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// True if colours may be used.
    pub has_colour: bool,
    /// True if only ASCII characters may be used for our own signs.
    pub is_ascii: bool,
    /// True for a text of its own: without a line of keys, and without a selection.
    pub is_batch: bool,
}

/// All data that a screen is made from.
#[derive(Clone, Debug, Default)]
pub struct State {
    history: History,
    /// The interval that is shown while paused.
    paused: Option<Interval>,
    /// The choices by which the table is made.
    pub choice: Choice,
    /// The page that is shown.
    pub page: Page,
    /// The way in which signs are drawn.
    pub look: Look,
    /// True once the watched processes have ended, or are left.
    pub has_ended: bool,
    /// True while a filter is typed.
    pub is_typing: bool,
    /// The selected line; the first one if `None`.
    selected: Option<Group>,
    /// Number of lines by which a page is scrolled.
    pub scrolled: usize,
    /// Size of the screen, columns and lines.
    size: (u16, u16),
    /// True if the mouse is the screen's, false if it is the terminal's.
    pub has_mouse: bool,
}

impl State {
    /// Creates the state before the first snapshot.
    pub fn new(choice: Choice, look: Look) -> Self {
        Self { choice, look, has_mouse: !look.is_batch, ..Self::default() }
    }

    /// Adds a snapshot.
    pub fn push(&mut self, tally: Tally) {
        self.history.push(tally);
    }

    /// Adds the judgement of a snapshot.
    pub fn judge(&mut self, judged: Judged) {
        self.history.judge(judged);
    }

    /// Notes the size of the screen.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        self.size = (columns, lines);
    }

    /// Returns the contents that the screen has to hold.
    pub(crate) fn contents(&self) -> Contents {
        Contents { findings: self.shown().judged.reported().count(), is_text: self.look.is_batch }
    }

    fn areas(&self) -> Areas {
        let (columns, lines) = self.size;
        Areas::within(Rect::new(0, 0, columns, lines), self.contents())
    }

    /// Returns the snapshots.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the interval that is shown.
    pub fn shown(&self) -> &Interval {
        self.paused.as_ref().unwrap_or_else(|| self.history.newest())
    }

    /// Returns true if newer snapshots are not shown.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns the table's lines.
    pub fn lines(&self) -> Vec<TableLine> {
        lines(self.shown(), &self.choice)
    }

    /// Returns the place of the selected line among `lines`.
    pub fn selection(&self, lines: &[TableLine]) -> usize {
        let is_it = |line: &TableLine| Some(&line.group) == self.selected.as_ref();
        lines.iter().position(is_it).unwrap_or(0)
    }

    /// Acts on an event. Returns true if the user leaves.
    pub fn on(&mut self, event: Event) -> bool {
        if self.is_typing {
            self.on_typed(event);
            return false;
        }
        match event {
            Event::Char('q') => return true,
            Event::Char('?' | 'h') => self.go(if self.page == Page::Help { Page::Table } else { Page::Help }),
            Event::Char('f') => self.go(if self.page == Page::Findings { Page::Table } else { Page::Findings }),
            Event::Char('p' | ' ') => {
                self.paused = if self.is_paused() { None } else { Some(self.history.newest().clone()) }
            }
            Event::Char('m') => self.has_mouse = !self.has_mouse,
            _ if self.page == Page::Table => self.on_table(event),
            _ => self.on_page(event),
        }
        false
    }

    fn go(&mut self, page: Page) {
        self.page = page;
        self.scrolled = 0;
    }

    fn on_typed(&mut self, event: Event) {
        match event {
            Event::Char(c) if !c.is_control() => self.choice.filter.push(c),
            Event::Backspace => drop(self.choice.filter.pop()),
            Event::Escape => {
                self.choice.filter.clear();
                self.is_typing = false;
            }
            Event::Enter | Event::Up | Event::Down => self.is_typing = false,
            _ => {}
        }
    }

    fn on_table(&mut self, event: Event) {
        let page = usize::from(self.areas().list.height).max(1) as isize;
        match event {
            Event::Char('/') => self.is_typing = true,
            Event::Char('g') => self.choice.group = after(&GroupBy::ALL, self.choice.group),
            Event::Char('s') => self.choice.sort = after(&SortBy::ALL, self.choice.sort),
            Event::Char('t') => self.choice.sort = SortBy::Toll,
            Event::Char('c') => self.choice.sort = SortBy::Calls,
            Event::Char('w') => self.choice.sort = SortBy::Waited,
            Event::Char('n') => self.choice.sort = SortBy::Name,
            Event::Char('r') => self.choice.is_reversed = !self.choice.is_reversed,
            Event::Char(digit @ '1'..='5') => {
                let nth = digit as usize - '1' as usize;
                self.choice.group = GroupBy::ALL.get(nth).copied().unwrap_or_default();
            }
            Event::Char('k') | Event::Up => self.move_by(-1),
            Event::Char('j') | Event::Down => self.move_by(1),
            Event::PageUp => self.move_by(-page),
            Event::PageDown => self.move_by(page),
            Event::Home => self.move_by(isize::MIN),
            Event::End => self.move_by(isize::MAX),
            Event::Wheel(lines) => self.move_by(lines.into()),
            Event::Enter => self.drill_down(),
            Event::Escape => self.choice.filter.clear(),
            Event::Click(column, line) => self.on_click(column, line),
            Event::Char(_) | Event::Backspace => {}
        }
    }

    fn on_page(&mut self, event: Event) {
        let page = usize::from(self.size.1.saturating_sub(4)).max(1);
        match event {
            Event::Escape | Event::Backspace => self.go(Page::Table),
            Event::Char('k') | Event::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Event::Char('j') | Event::Down | Event::Enter => self.scrolled = self.scrolled.saturating_add(1),
            Event::PageUp => self.scrolled = self.scrolled.saturating_sub(page),
            Event::PageDown => self.scrolled = self.scrolled.saturating_add(page),
            Event::Home => self.scrolled = 0,
            Event::End => self.scrolled = usize::MAX,
            Event::Wheel(lines) => self.scrolled = self.scrolled.saturating_add_signed(lines.into()),
            Event::Char(_) | Event::Click(..) => {}
        }
    }

    /// Keeps the scrolled lines of a page within its length.
    pub fn note_length(&mut self, lines: usize, height: usize) {
        self.scrolled = self.scrolled.min(lines.saturating_sub(height));
    }

    fn move_by(&mut self, by: isize) {
        let lines = self.lines();
        let at = self.selection(&lines).saturating_add_signed(by).min(lines.len().saturating_sub(1));
        self.selected = lines.get(at).map(|line| line.group.clone());
    }

    fn drill_down(&mut self) {
        let lines = self.lines();
        let at = self.selection(&lines);
        if let Some(line) = lines.into_iter().nth(at) {
            self.selected = Some(line.group.clone());
            self.go(Page::Detail(line.group));
        }
    }

    fn on_click(&mut self, column: u16, line: u16) {
        let areas = self.areas();
        let sorts = |column: &Column| match column {
            Column::Toll | Column::Each => SortBy::Toll,
            Column::Calls | Column::Failed => SortBy::Calls,
            Column::Waited | Column::Bar => SortBy::Waited,
            Column::Name => SortBy::Name,
        };
        if line == areas.headings.y {
            if let Some(clicked) = areas.column_at(column) {
                let sort = sorts(&clicked);
                self.choice.is_reversed = sort == self.choice.sort && !self.choice.is_reversed;
                self.choice.sort = sort;
            }
        } else if line >= areas.list.y && line < areas.list.y.saturating_add(areas.list.height) {
            let lines = self.lines();
            let first = first_shown(self.selection(&lines), areas.list.height.into(), lines.len());
            let clicked = lines.get(first + usize::from(line - areas.list.y)).map(|line| line.group.clone());
            if clicked.is_some() && clicked == self.selected {
                self.drill_down();
            } else if clicked.is_some() {
                self.selected = clicked;
            }
        } else if line >= areas.findings.y && line < areas.findings.y.saturating_add(areas.findings.height) {
            self.go(Page::Findings);
        }
    }
}

/// Returns the first line to show of a list of `len` lines, so that the selected one is on the
/// screen.
pub(crate) fn first_shown(selected: usize, height: usize, len: usize) -> usize {
    let height = height.max(1);
    // The selected line is in the middle, except near the list's ends.
    selected.saturating_sub(height / 2).min(len.saturating_sub(height))
}

fn after<T: Copy + PartialEq>(all: &[T], one: T) -> T {
    let at = all.iter().position(|other| *other == one).map_or(0, |at| at + 1);
    all.get(at).or(all.first()).copied().unwrap_or(one)
}
