//! Whether the room lets anybody in at all: its phase and what operators said, from events.

use waitroom_core::What;

#[derive(Clone, Debug, Default)]
pub(super) struct Doors {
    held: Option<String>,
    running: bool,
}

impl Doors {
    pub fn take(&mut self, what: &What) {
        match what {
            What::Held { hold, .. } => {
                self.held = hold.stops_admissions().then(|| hold.reason().to_owned());
            }
            What::Resumed { .. } => self.held = None,
            What::SaleStarted | What::Drawn { .. } | What::Reopened { .. } => self.running = true,
            What::DoorsOpened | What::DrawClosed { .. } | What::SaleEnded { .. } => {
                self.running = false;
            }
            _ => {}
        }
    }

    /// Why nobody may enter; none if somebody may.
    pub fn shut(&self) -> Option<String> {
        match &self.held {
            Some(reason) => Some(format!("held: {reason:?}")),
            None => (!self.running).then(|| "not running".to_owned()),
        }
    }
}
