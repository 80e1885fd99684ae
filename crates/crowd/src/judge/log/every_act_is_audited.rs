//! Promise 16: every operator action has exactly one audit entry; the chain verifies.
//!
//! Admissions by hand, pauses and resumes are events of the room, with who did it, one for each
//! call that was acknowledged and changed something: fewer, and an act left no trace. More than
//! were asked for may be somebody else's; that is noted. The `_system` log must be readable and
//! its chain must hold.

use waitroom_store::{Error, RoomName};

use super::known::Known;
use super::{Found, Links, Source};
use crate::judge::Verdict;

pub(super) const PROMISE: u8 = 16;

pub(super) fn check_room(room: &RoomName, known: &Known, verdict: &mut Verdict) {
    let Some(asked) = verdict.acts.get(room.as_str()) else { return };
    let acts =
        [("admit", asked.admits_acknowledged), ("pause", asked.pauses), ("resume", asked.resumes)];
    for (act, acknowledged) in acts {
        let logged = known.act(act);
        if logged < acknowledged {
            let said = format!(
                "room \"{room}\": {act} was acknowledged {acknowledged} times, and the log has it \
                 {logged} times"
            );
            verdict.found.add(PROMISE, said, &[]);
        }
    }
    let logged = known.act("admit");
    let most = asked.admits_acknowledged + asked.admits_unknown;
    if logged > most {
        verdict.notes.push(format!(
            "room \"{room}\": the log has {logged} admissions by hand, the histories tell of at \
             most {most}; somebody else let people in too, or an act was done twice"
        ));
    }
}

pub(super) async fn check_system(store: &impl Source, found: &mut Found) -> Result<(), Error> {
    let room = RoomName::system();
    let told = store.tip(&room).await?;
    let mut links = Links { at: store.trimmed_to(&room).await?, chain: None };
    if links.at.0 == 0 {
        links.chain = Some(waitroom_store::Chain::START);
    }
    while links.at < told.head {
        let batches = store.read(&room, links.at).await?;
        if batches.is_empty() {
            break;
        }
        for batch in &batches {
            links.follow(&room, batch, found);
            let entries: Result<Vec<waitroom_store::system::Entry>, _> =
                serde_json::from_slice(&batch.payload);
            match entries {
                Ok(entries) if entries.len() as u64 == u64::from(batch.events) => {}
                _ => {
                    let said =
                        format!("the _system log cannot be read after event {}", batch.after);
                    found.add(PROMISE, said, &[]);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn an_act_that_left_no_trace_is_found() {
        let admit = "op 0..1 admit count=1 -> 200 granted=1";
        let lost = "op 2..3 admit count=1 -> lost";
        let acted = || Room::running().join(0).join(1).admit_by_hand(0);
        assert_eq!(acted().broken_with(admit), KEPT);
        assert_eq!(acted().broken_with(&format!("{admit}\n{lost}")), KEPT);
        assert_eq!(acted().broken_with(&format!("{admit}\n{admit}")), [16]);
    }

    #[test]
    fn a_pause_or_a_resume_that_left_no_trace_is_found() {
        let pauses = |count: usize| {
            let one = "op 0..1 resume -> 200\n op 2..3 pause -> 200\n op 4..5 resume -> 200\n";
            one.repeat(count)
        };
        let acted = || Room::running().pause().resume();
        assert_eq!(acted().broken_with(&pauses(1)), KEPT);
        assert_eq!(acted().broken_with(&pauses(2)), [16]);
        let unsure = "op 0..1 pause -> lost\n op 2..3 pause -> 200\n op 4..5 resume -> 200";
        assert_eq!(acted().broken_with(unsure), KEPT);
    }

    #[test]
    fn a_chain_that_breaks_at_one_bit_is_found() {
        assert_eq!(Room::running().join(0).join(1).broken_chain().broken_among(&[16]), [16]);
    }

    #[test]
    fn a_system_log_that_cannot_be_read_is_found() {
        assert_eq!(Room::running().system("[]").broken(), [16]);
        assert_eq!(Room::running().system("not json").broken(), [16]);
        let entry = r#"[{"v":1,"at_ms":5,"who":"x","what":{"kind":"room_created","room":"r"}}]"#;
        assert_eq!(Room::running().system(entry).broken(), KEPT);
    }
}
