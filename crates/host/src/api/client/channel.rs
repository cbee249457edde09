//! What processes of agents ask the holder.

use futures_util::Stream;
use holdfast_core::limits;
use reqwest::Method;
use serde_json::Value;

use super::{Holder, answer};
use crate::api::channel::{Acknowledge, AskAnswer, AskPerson, Fetch, Follow, Say, Whereabouts, Withdraw};
use crate::deliver::{Letter, Offer};
use crate::engines::CommandError;

impl Holder {
    /// Messages for an agent as they are offered, until the connection ends.
    pub async fn listen(&self, at: &Whereabouts) -> Result<impl Stream<Item = Offer> + use<>, CommandError> {
        let route = "/api/channel/listen?";
        let known = [
            ("binding", &at.binding),
            ("session", &at.session),
            ("transcript", &at.transcript),
            ("folder", &at.folder),
        ];
        // Not kept while it is sent: a serializer cannot go from one thread to another.
        let address = {
            let mut address = url::form_urlencoded::Serializer::for_suffix(route.to_owned(), route.len());
            for (key, value) in known {
                if let Some(value) = value {
                    address.append_pair(key, value);
                }
            }
            address.finish()
        };
        self.events(&address).await
    }

    /// The agent has a message.
    pub async fn acknowledge(&self, order: &Acknowledge) -> Result<(), CommandError> {
        self.agent("acknowledge", order).await.map(|_: Value| ())
    }

    /// Has the bot say something; it is in custody when this returns.
    pub async fn say(&self, order: &Say) -> Result<(), CommandError> {
        self.agent("say", order).await.map(|_: Value| ())
    }

    /// The last messages for an agent, oldest first.
    pub async fn fetch(&self, order: &Fetch) -> Result<Vec<Letter>, CommandError> {
        self.agent("fetch", order).await
    }

    /// Asks a person; answers when that has ended, or with the code `silent` when the holder does not answer anything within
    /// [`limits::ASK_PLACE`].
    pub async fn ask(&self, order: &AskPerson) -> Result<AskAnswer, CommandError> {
        tokio::select! {
            answer = answer(self.request(Method::POST, "/api/channel/ask").json(order)) => answer,
            () = self.hangs(limits::ASK_PLACE) => Err(self.silent()),
        }
    }

    /// Takes a question back.
    pub async fn withdraw(&self, order: &Withdraw) -> Result<(), CommandError> {
        self.agent("withdraw", order).await.map(|_: Value| ())
    }

    /// Whoever serves follows another transcript of an agent's.
    pub async fn follow(&self, order: &Follow) -> Result<(), CommandError> {
        self.agent("follow", order).await.map(|_: Value| ())
    }

    async fn agent<T: serde::de::DeserializeOwned>(
        &self,
        what: &str,
        order: &impl serde::Serialize,
    ) -> Result<T, CommandError> {
        let request = self.request(Method::POST, &format!("/api/channel/{what}"));
        answer(request.json(order).timeout(limits::API_ANSWER)).await
    }
}
