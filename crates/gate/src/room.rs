//! A room as a gate knows it: what passes are checked with, the picture that says who ended
//! early, and whether anybody can be asked.

use std::sync::Arc;

use arc_swap::ArcSwap;
use waitroom_api::RoomDesk;
use waitroom_core::id::TicketId;
use waitroom_core::{Board, Hold, Status};

use crate::looks::Looks;
use crate::page::Kept;
use crate::reach::Reach;
use crate::renewed::Renewed;
use crate::session::Activity;
use crate::site::Site;
use crate::verdict::Stand;

/// Where a gate's picture of a room comes from.
#[derive(Debug)]
pub enum View {
    /// The room is run here: its newest board, without a copy.
    Here,
    /// A picture that somebody else brings, and that may stop coming.
    Brought(ArcSwap<Board>),
}

#[derive(Debug)]
pub struct GateRoom {
    pub desk: Arc<RoomDesk>,
    view: View,
    pub reach: Reach,
    pub activity: Activity,
    pub pages: Kept,
    pub looks: Looks,
    pub renewed: Renewed,
}

impl GateRoom {
    pub fn new(desk: Arc<RoomDesk>, view: View) -> GateRoom {
        GateRoom {
            desk,
            view,
            reach: Reach::default(),
            activity: Activity::default(),
            pages: Kept::default(),
            looks: Looks::default(),
            renewed: Renewed::default(),
        }
    }

    pub fn name(&self) -> &str {
        self.desk.name().as_str()
    }

    /// A look at the picture that this gate goes by.
    pub fn look<T>(&self, look: impl FnOnce(&Board) -> T) -> T {
        match &self.view {
            View::Here => look(&self.desk.handle().board_guard()),
            View::Brought(board) => look(&board.load()),
        }
    }

    /// A newer picture came. Says which version this gate goes by from now on.
    pub fn bring(&self, newer: Arc<Board>) -> u64 {
        let View::Brought(board) = &self.view else {
            return self.desk.handle().board_guard().version();
        };
        if newer.version() > board.load().version() {
            board.store(newer);
        }
        board.load().version()
    }

    /// How the ticket of a genuine pass stands at this site. Where slots are freed as soon as all
    /// gates refuse, a gate that the others do not count with any more goes by its picture alone.
    pub fn stand_at(&self, site: &Site, id: TicketId) -> Stand {
        let (stand, status) = self.stand_now(id);
        match site.only_way_in && !self.desk.handle().is_listed() {
            true => stand.when_cut_off(status, self.desk.now()),
            false => stand,
        }
    }

    fn stand_now(&self, id: TicketId) -> (Stand, Option<Status>) {
        // An id of this room's own pass that the room cannot read: keys were changed by hand.
        let Some(presented) = self.desk.presented(id, None) else {
            return (Stand::Inside(None), None);
        };
        let now = self.desk.now();
        self.look(|board| match board.look(now, &presented) {
            Ok(view) => (Stand::of(Some(view.status), view.session), Some(view.status)),
            Err(waitroom_core::Refusal::Forgotten) => (Stand::Ended, None),
            // The board is behind, or the room was brought up anew: the signature decides.
            Err(_) => (Stand::Inside(None), None),
        })
    }

    /// Why nobody may come in, not even those inside.
    pub fn frozen(&self) -> Option<String> {
        self.look(|board| {
            let state = board.state();
            let reason = state.hold().map(Hold::reason).unwrap_or_default();
            state.frozen().then(|| reason.to_owned())
        })
    }
}
