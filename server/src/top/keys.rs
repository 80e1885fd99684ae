//! What a key means, given what is on the screen. No terminal here: keys in, wishes out.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::picture::RoomPicture;

/// What the person at the keys has chosen and is being asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desk {
    /// The chosen room, by name: rows move when rooms come and go.
    pub room: Option<String>,
    pub asking: Option<Asking>,
    /// What became of the last wish.
    pub notice: Option<String>,
}

/// A question that must be answered before anything happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Visitors read why, so it must be said.
    Pause {
        room: String,
        reason: String,
    },
    Resume {
        room: String,
    },
}

/// What should happen now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Quit,
    Pause { room: String, reason: String },
    Resume { room: String },
}

/// Longer reasons are refused by rooms anyway.
const REASON_CHARS_MAX: usize = 200;

impl Desk {
    /// The row of the chosen room; the first one when it is gone or none was chosen yet.
    pub fn chosen(&self, rooms: &[RoomPicture]) -> usize {
        let wanted = self.room.as_deref();
        rooms.iter().position(|room| Some(room.name.as_str()) == wanted).unwrap_or(0)
    }

    pub fn press(&mut self, key: KeyEvent, rooms: &[RoomPicture]) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Wish::Quit;
        }
        match self.asking.take() {
            Some(asking) => self.answer(asking, key),
            None => self.choose(key, rooms),
        }
    }

    fn choose(&mut self, key: KeyEvent, rooms: &[RoomPicture]) -> Wish {
        let at = self.chosen(rooms);
        let name = |at: usize| rooms.get(at).map(|room| room.name.clone());
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Down | KeyCode::Char('j') => {
                self.room = name((at + 1).min(rooms.len().saturating_sub(1)));
            }
            KeyCode::Up | KeyCode::Char('k') => self.room = name(at.saturating_sub(1)),
            KeyCode::Char('p') => {
                let pause = |room| Asking::Pause { room, reason: String::new() };
                self.asking = name(at).map(pause);
            }
            KeyCode::Char('r') => self.asking = name(at).map(|room| Asking::Resume { room }),
            _ => {}
        }
        self.notice = None;
        Wish::Nothing
    }

    fn answer(&mut self, asking: Asking, key: KeyEvent) -> Wish {
        match (asking, key.code) {
            (_, KeyCode::Esc) => self.notice = Some("nothing was done".to_owned()),
            (Asking::Pause { room, reason }, KeyCode::Enter) if !reason.trim().is_empty() => {
                return Wish::Pause { room, reason: reason.trim().to_owned() };
            }
            (Asking::Pause { room, mut reason }, code) => {
                match code {
                    KeyCode::Char(character) if reason.chars().count() < REASON_CHARS_MAX => {
                        reason.push(character);
                    }
                    KeyCode::Backspace => {
                        reason.pop();
                    }
                    _ => {}
                }
                self.asking = Some(Asking::Pause { room, reason });
            }
            (Asking::Resume { room }, KeyCode::Char('y')) => return Wish::Resume { room },
            (Asking::Resume { .. }, KeyCode::Char('n')) => {
                self.notice = Some("nothing was done".to_owned());
            }
            (asking, _) => self.asking = Some(asking),
        }
        Wish::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(names: &[&str]) -> Vec<RoomPicture> {
        let room = |name: &&str| RoomPicture { name: name.to_string(), ..RoomPicture::default() };
        names.iter().map(room).collect()
    }

    fn press(desk: &mut Desk, rooms: &[RoomPicture], keys: &str) -> Wish {
        let code = |key: char| match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            'v' => KeyCode::Down,
            '^' => KeyCode::Up,
            other => KeyCode::Char(other),
        };
        let wishes = keys.chars().map(|key| desk.press(code(key).into(), rooms));
        wishes.last().expect("some key")
    }

    #[test]
    fn a_pause_needs_a_room_a_reason_and_enter() {
        let rooms = rooms(&["a", "b"]);
        let mut desk = Desk::default();
        assert_eq!(press(&mut desk, &rooms, "vp"), Wish::Nothing);
        assert_eq!(press(&mut desk, &rooms, "\n  \n"), Wish::Nothing, "not without a reason");
        let pause = Wish::Pause { room: "b".into(), reason: "q p down".into() };
        assert_eq!(press(&mut desk, &rooms, "q p downx\u{8}\n"), pause);
        assert_eq!(desk.asking, None);
    }

    #[test]
    fn a_resume_needs_a_yes_and_escape_takes_everything_back() {
        let rooms = rooms(&["a"]);
        let mut desk = Desk::default();
        assert_eq!(press(&mut desk, &rooms, "r\n"), Wish::Nothing, "enter is no yes");
        assert_eq!(press(&mut desk, &rooms, "y"), Wish::Resume { room: "a".into() });
        assert_eq!(press(&mut desk, &rooms, "p\u{1b}"), Wish::Nothing);
        assert_eq!((&desk.asking, desk.notice.as_deref()), (&None, Some("nothing was done")));
        assert_eq!(press(&mut desk, &rooms, "q"), Wish::Quit);
    }

    #[test]
    fn the_choice_follows_the_room_and_not_the_row() {
        let mut desk = Desk::default();
        press(&mut desk, &rooms(&["b", "c"]), "v");
        assert_eq!(desk.chosen(&rooms(&["a", "b", "c"])), 2);
        assert_eq!(desk.chosen(&rooms(&["a", "b"])), 0, "it is gone");
        assert_eq!(press(&mut Desk::default(), &[], "pr^v"), Wish::Nothing, "no rooms at all");
    }
}
