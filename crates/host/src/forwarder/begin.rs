//! What comes before the first connection: the seat's store is opened, so that nobody logs in who could keep nothing.

use std::path::{Path, PathBuf};

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::seat::Unusable;
use holdfast_store::StoreError;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::store::{OpenError, Opened, SeatStore};
use super::{Means, News, Order, Post, SetAside};
use crate::channel::Event as Heard;
use crate::deliver::Courier;

/// Opens what the seat keeps. Otherwise what is to be told, if anybody is left to be told.
pub(super) async fn open(
    post: &Post,
    means: &Means,
    cut: &CancellationToken,
) -> Result<(Opened, Courier, Option<SetAside>), Option<News>> {
    let (folder, generation, offers) = (post.folder.clone(), post.generation, means.desk.offers().clone());
    let work = move || {
        let opened = SeatStore::open(&folder, generation).map_err(refused)?;
        match Courier::open(&folder, offers) {
            Ok(courier) => {
                let aside = opened.set_aside.clone().map(set_aside);
                Ok((opened, courier, aside))
            }
            Err(why) => {
                opened.store.close();
                Err(News::Broken(Unusable::for_now(Code::Unavailable, why)))
            }
        }
    };
    let mut opening = tokio::task::spawn_blocking(work);
    tokio::select! {
        biased;
        () = cut.cancelled() => {
            // The disk may not answer for long; what is opened in vain then is closed.
            tokio::spawn(async move {
                if let Ok(Ok((opened, courier, _))) = opening.await {
                    courier.close().await;
                    close(opened.store).await;
                }
            });
            Err(None)
        }
        opened = &mut opening => match opened {
            Ok(opened) => opened.map_err(Some),
            Err(error) => Err(Some(News::Broken(Unusable::for_now(Code::InternalError, error.to_string())))),
        },
    }
}

/// What a damaged store still tells of what is lost with it.
fn set_aside(to: PathBuf) -> SetAside {
    let waited = waited(&to).ok();
    SetAside { to, waited }
}

fn waited(store: &Path) -> rusqlite::Result<(u64, u64)> {
    let db = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let count = |sql| db.query_row(sql, [], |row| row.get::<_, u64>(0));
    Ok((
        count("SELECT count(*) FROM outbox WHERE standing = 'prepared'")?,
        count("SELECT count(*) FROM inbox WHERE standing <> 'done'")?,
    ))
}

fn refused(error: OpenError) -> News {
    let reason = error.to_string();
    match error {
        OpenError::Superseded(generation) => News::Superseded(generation),
        // Only a newer version can read it.
        OpenError::Store(why @ StoreError::Newer) => News::Broken(Unusable::for_good(why.code(), reason)),
        OpenError::Store(why) => News::Broken(Unusable::for_now(why.code(), reason)),
    }
}

/// Says that everything is open and waits for the first connection. Otherwise it is over, with what is to be told of that.
pub(super) async fn connected(
    post: &Post,
    set_aside: Option<SetAside>,
    orders: &mut mpsc::UnboundedReceiver<Order>,
    cut: &CancellationToken,
) -> Result<mpsc::Receiver<Heard>, Option<News>> {
    if let Some(to) = set_aside {
        (post.told)(News::SetAside(to));
    }
    (post.told)(News::Opened);
    loop {
        let order = tokio::select! {
            biased;
            () = cut.cancelled() => return Err(None),
            order = orders.recv() => order,
        };
        match order {
            Some(Order::Connected(heard)) => return Ok(heard),
            Some(Order::Lost) => {}
            Some(Order::Leave) => return Err(Some(News::Drained)),
            None => return Err(None),
        }
    }
}

/// Writes whatever was handed to the store, and closes it; where the disk does not answer, it does so when it answers.
pub(super) async fn close(store: SeatStore) {
    let closing = tokio::task::spawn_blocking(move || store.close());
    // What is written late is still checked against the generation.
    let _ = tokio::time::timeout(limits::SEAT_DISK, closing).await;
}
