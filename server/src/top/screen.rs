//! The screen: asks the server on one thread, waits for keys on another, draws what is new.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};

use super::draw::{self, Shown, Theme};
use super::keys::{Desk, Wish};
use super::picture::Picture;
use super::source::{Look, Source};
use crate::failure::{Exit, Failure};

/// Paces that are kept to be drawn: more than fit on any screen.
const HISTORY_MAX: usize = 240;

/// Paces of a room over time, the newest last.
pub type History = BTreeMap<String, VecDeque<u64>>;

/// What wakes the screen.
enum News {
    Looked(Result<Look, String>),
    Key(Event),
    Done(String),
}

pub fn show(source: Source, first: Look, every: Duration) -> Result<Exit, Failure> {
    let (news, heard) = channel();
    let source = Arc::new(source);
    ask(source.clone(), every, news.clone());
    let terminal = ratatui::init();
    listen(news.clone());
    let ended = run(terminal, &source, first, &heard, &news);
    ratatui::restore();
    ended
}

fn run(
    mut terminal: ratatui::DefaultTerminal,
    source: &Arc<Source>,
    first: Look,
    heard: &Receiver<News>,
    news: &Sender<News>,
) -> Result<Exit, Failure> {
    let theme = Theme::of_environment();
    let mut picture = Picture::between(&first, &first);
    // The longest line is what somebody came to see; from then on the choice is theirs.
    let busiest = picture.rooms.iter().max_by(|one, other| one.waiting.total_cmp(&other.waiting));
    let room = busiest.map(|room| room.name.clone());
    let (mut last, mut history) = (first, History::new());
    let mut desk = Desk { room, ..Desk::default() };
    let mut trouble: Option<String> = None;
    loop {
        let shown = Shown {
            picture: &picture,
            desk: &desk,
            history: &history,
            trouble: trouble.as_deref(),
        };
        terminal.draw(|frame| draw::draw(frame, &shown, theme)).map_err(|error| {
            Failure::new(Exit::Io, format!("the terminal cannot be written to: {error}"))
        })?;
        // A resize is an event as well, so nothing is missed while nothing comes.
        let news_now = match heard.recv_timeout(Duration::from_secs(60)) {
            Ok(news) => news,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Fine),
        };
        match news_now {
            News::Looked(Ok(look)) => {
                picture = Picture::between(&last, &look);
                remember(&mut history, &picture);
                (last, trouble) = (look, None);
            }
            News::Looked(Err(why)) => trouble = Some(why),
            News::Done(said) => desk.notice = Some(said),
            News::Key(Event::Key(key)) => match desk.press(key, &picture.rooms) {
                Wish::Nothing => {}
                Wish::Quit => return Ok(Exit::Fine),
                Wish::Pause { room, reason } => {
                    let said = format!("{room}: paused; visitors read the reason");
                    act(source, news, said, move |source| source.pause(&room, &reason));
                }
                Wish::Resume { room } => {
                    let said = format!("{room}: resumed");
                    act(source, news, said, move |source| source.resume(&room));
                }
            },
            News::Key(_) => {}
        }
    }
}

fn remember(history: &mut History, picture: &Picture) {
    history.retain(|name, _| picture.rooms.iter().any(|room| room.name == *name));
    for room in &picture.rooms {
        let paces = history.entry(room.name.clone()).or_default();
        // Tenths, so that a slow room is not drawn flat.
        paces.push_back((room.admitted_per_s * 10.0).round() as u64);
        if paces.len() > HISTORY_MAX {
            paces.pop_front();
        }
    }
}

/// Looks for ever; ends when nobody listens any more.
fn ask(source: Arc<Source>, every: Duration, news: Sender<News>) {
    thread::spawn(move || {
        loop {
            thread::sleep(every);
            let looked = source.look().map_err(|failure| failure.said().to_owned());
            if news.send(News::Looked(looked)).is_err() {
                return;
            }
        }
    });
}

/// Waits for keys; ends with the process, because reading a key cannot be called off.
fn listen(news: Sender<News>) {
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if news.send(News::Key(event)).is_err() {
                return;
            }
        }
    });
}

/// Does what was wished for beside the screen, and says what became of it.
fn act(
    source: &Arc<Source>,
    news: &Sender<News>,
    said: String,
    act: impl FnOnce(&Source) -> Result<(), String> + Send + 'static,
) {
    let (source, news) = (source.clone(), news.clone());
    thread::spawn(move || {
        let told = act(&source).map_or_else(|why| format!("nothing was done: {why}"), |()| said);
        let _the_screen_may_be_gone = news.send(News::Done(told));
    });
}
