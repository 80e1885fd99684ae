//! Whether anything in an instance panicked. The engine catches that and begins again, so nothing
//! else would tell; and with a bug planted it is nothing to print.

use std::cell::{Cell, RefCell};
use std::sync::Once;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Panics of one run, which has its thread to itself while it lasts.
pub(super) struct Watch;

impl Watch {
    pub(super) fn begin(quiet: bool) -> Watch {
        static HOOKED: Once = Once::new();
        HOOKED.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                COUNT.with(|count| count.set(count.get() + 1));
                FIRST.with(|first| {
                    first.borrow_mut().get_or_insert_with(|| info.to_string());
                });
                if !QUIET.with(Cell::get) {
                    before(info);
                }
            }));
        });
        COUNT.with(|count| count.set(0));
        FIRST.with(|first| first.borrow_mut().take());
        QUIET.with(|it| it.set(quiet));
        Watch
    }

    /// What was seen, if anything.
    pub(super) fn end(self) -> Option<String> {
        let (count, first) = (COUNT.with(Cell::get), FIRST.with(|it| it.borrow_mut().take()));
        first.map(|first| format!("{count} panics in instances, the first: {first}"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        QUIET.with(|it| it.set(false));
    }
}
