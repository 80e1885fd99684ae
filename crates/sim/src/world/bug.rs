//! Mistakes planted on purpose, each of which one checker must find.
//!
//! A checker that was never seen to fail is not known to work. Every promise has at least two
//! bugs here, one of them off by one; a run with a bug is judged by the same checkers as any other.
//! Some bugs sit between the room and its surroundings (settings, replies, durability, boards),
//! some falsify the log that is judged, some sit between whole instances, the store and the bus;
//! none of them is in the core or in the engine.

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// 1: answers leave when a round is decided, not when it is durable.
    AnswersBeforeDurable,
    /// 1: when a round is durable, the round behind it is answered as well.
    AnswersOneRoundTooMany,
    /// 2: every other join loses its identity on the way.
    ForgetsWhoJoins,
    /// 2: a repeated join key arrives with its last bit changed.
    KeyOffByOneBit,
    /// 3: a repeated claim answers with a session that ends one millisecond later.
    ClaimOffByOneMilli,
    /// 3: an admission is in the log twice.
    AdmitsTwice,
    /// 4: the room lets one more in than its settings say.
    OneSlotTooMany,
    /// 4: after a restart the room has forgotten half of the limit.
    TwiceTheSlots,
    /// 5: one admission a period more than the rate.
    RateOffByOne,
    /// 5: no-shows give their token back although the settings say keep.
    TokensComeBack,
    /// 6: neighbours are served in the wrong order.
    NeighboursSwapped,
    /// 6: tickets are shuffled in a room that promises first come, first served.
    SecretShuffle,
    /// 7: the last ticket does not take part.
    DrawCountOffByOne,
    /// 7: another seed than the one that was committed to.
    DrawOtherSeed,
    /// 8: every now and then a position is one too high.
    PositionOffByOne,
    /// 8: readers are given any board, however old.
    OldBoards,
    /// 9: pausing is acknowledged and forgotten.
    PauseIgnored,
    /// 9: one more is admitted after the pause.
    OneMoreAfterPause,
    /// 10: a sink that restarts goes on one event too far.
    SinkSkipsOne,
    /// 10: what is sent again is not what was sent first.
    SinkResendsOther,
    /// 11: the check bits of an id are not looked at.
    IdsUnchecked,
    /// 11: an id of the epoch before passes.
    EpochOffByOne,
    /// 12: nobody looks at the deadlines.
    NeverTicks,
    /// 12: the bucket is looked at one tick and a millisecond too late.
    TicksTooLate,
    /// 13: a ticket ends twice in the log.
    EndsTwice,
    /// 13: an end is missing one of the tickets it counts.
    WaitingOffByOne,
    /// 14: an old owner's batch lands after a newer epoch began.
    OldEpochLands,
    /// 14: a number is given twice.
    NumberTwice,
    /// 15: the tail after a snapshot is replayed one event short.
    TailOffByOne,
    /// 15: a snapshot forgets who moved.
    SnapshotForgets,
    /// 4 and 14: the store takes the batches of former owners as well, and tells them nothing.
    FencingForgotten,
    /// 4 and 5: whoever takes a room over does not wait for the last batch.
    TakeoverOneBatchShort,
    /// 5: whoever takes a room over finds one token in the bucket.
    OneTokenAtTakeover,
    /// 14: an owner believes in its lease one tick longer than it may last.
    LeaseOneTickTooLong,
    /// 14: a renewal that nobody could be asked for counts as kept.
    RenewalsUnheard,
    /// 14: a room is given away before the last batch is durable.
    GivenBeforeDurable,
    /// 1: a request that arrives twice loses its key on the way.
    SecondCopyWithoutKey,
    /// 1: the owner counts silence up to now, however old the others' reports are.
    ReportsNeverOld,
    /// 1: a report counts as arrived when it is written.
    LostReportsUnnoticed,
    /// 1: what is told begins one report after the last that has arrived.
    OneReportTooFar,
    /// 8: a follower answers with whatever it has.
    FollowersShowOld,
    /// 8: a follower answers although the visitor has seen one version more.
    FollowersShowOneOlder,
    /// 10: the cursor moves when events are read, not when they are held.
    CursorBeforeDelivery,
    /// 10: a relay that begins again goes on one event too far.
    CursorOffByOne,
    /// 10: of a batch that is held in part, one message more counts as held.
    PartOffByOne,
}

impl Bug {
    /// Whether it sits between whole instances.
    pub fn is_of_machines(self) -> bool {
        self as u8 >= Bug::FencingForgotten as u8
    }

    /// Whether it is about whom instances tell each other to have heard of.
    pub(super) fn is_of_reports(self) -> bool {
        matches!(self, Bug::ReportsNeverOld | Bug::LostReportsUnnoticed | Bug::OneReportTooFar)
    }

    pub const ALL: [(u8, Bug); 47] = [
        (1, Bug::AnswersBeforeDurable),
        (1, Bug::AnswersOneRoundTooMany),
        (2, Bug::ForgetsWhoJoins),
        (2, Bug::KeyOffByOneBit),
        (3, Bug::ClaimOffByOneMilli),
        (3, Bug::AdmitsTwice),
        (4, Bug::OneSlotTooMany),
        (4, Bug::TwiceTheSlots),
        (5, Bug::RateOffByOne),
        (5, Bug::TokensComeBack),
        (6, Bug::NeighboursSwapped),
        (6, Bug::SecretShuffle),
        (7, Bug::DrawCountOffByOne),
        (7, Bug::DrawOtherSeed),
        (8, Bug::PositionOffByOne),
        (8, Bug::OldBoards),
        (9, Bug::PauseIgnored),
        (9, Bug::OneMoreAfterPause),
        (10, Bug::SinkSkipsOne),
        (10, Bug::SinkResendsOther),
        (11, Bug::IdsUnchecked),
        (11, Bug::EpochOffByOne),
        (12, Bug::NeverTicks),
        (12, Bug::TicksTooLate),
        (13, Bug::EndsTwice),
        (13, Bug::WaitingOffByOne),
        (14, Bug::OldEpochLands),
        (14, Bug::NumberTwice),
        (15, Bug::TailOffByOne),
        (15, Bug::SnapshotForgets),
        (4, Bug::FencingForgotten),
        (4, Bug::TakeoverOneBatchShort),
        (14, Bug::FencingForgotten),
        (5, Bug::TakeoverOneBatchShort),
        (5, Bug::OneTokenAtTakeover),
        (14, Bug::LeaseOneTickTooLong),
        (14, Bug::RenewalsUnheard),
        (14, Bug::GivenBeforeDurable),
        (1, Bug::SecondCopyWithoutKey),
        (1, Bug::ReportsNeverOld),
        (1, Bug::LostReportsUnnoticed),
        (1, Bug::OneReportTooFar),
        (8, Bug::FollowersShowOld),
        (8, Bug::FollowersShowOneOlder),
        (10, Bug::CursorBeforeDelivery),
        (10, Bug::CursorOffByOne),
        (10, Bug::PartOffByOne),
    ];
}
