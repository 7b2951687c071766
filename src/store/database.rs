//! The connection: one type whether the database is embedded or elsewhere.
//!
//! The SDK sizes the caches of an embedded store from the machine's memory and lets nobody change that, so an
//! embedded store is opened through the engine below the SDK, which has another handle type. This module
//! hides the difference and nothing else.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use surrealdb::engine::any::Any;
use surrealdb::engine::local::Db;
use surrealdb::method::Transaction;
use surrealdb::opt::auth::Database as DatabaseUser;
use surrealdb::types::{SurrealValue, Variables};
use surrealdb::{IndexedResults, Surreal};

/// A connection; a clone is a session of its own with the same rights.
#[derive(Debug, Clone)]
pub(super) enum Database {
    /// Embedded, with caches of our choosing.
    Tuned(Surreal<Db>),
    /// In memory, or elsewhere.
    Plain(Surreal<Any>),
}

/// A statement on its way; awaiting it runs it.
pub(super) struct Statement<'a> {
    target: Target<'a>,
    text: Cow<'a, str>,
    variables: Variables,
}

enum Target<'a> {
    Tuned(&'a Surreal<Db>),
    Plain(&'a Surreal<Any>),
    TunedTransaction(&'a Transaction<Db>),
    PlainTransaction(&'a Transaction<Any>),
}

/// A client transaction.
#[derive(Debug)]
pub(super) enum Work {
    Tuned(Transaction<Db>),
    Plain(Transaction<Any>),
}

impl Database {
    /// A statement for this connection.
    pub(super) fn query<'a>(&'a self, text: impl Into<Cow<'a, str>>) -> Statement<'a> {
        let target = match self {
            Database::Tuned(db) => Target::Tuned(db),
            Database::Plain(db) => Target::Plain(db),
        };
        Statement {
            target,
            text: text.into(),
            variables: Variables::new(),
        }
    }

    /// Begins a client transaction in a session of its own.
    pub(super) async fn begin(self) -> surrealdb::Result<Work> {
        Ok(match self {
            Database::Tuned(db) => Work::Tuned(db.begin().await?),
            Database::Plain(db) => Work::Plain(db.begin().await?),
        })
    }

    /// Selects namespace and database.
    pub(super) async fn use_database(&self, namespace: &str, database: &str) -> surrealdb::Result<()> {
        match self {
            Database::Tuned(db) => db.use_ns(namespace).use_db(database).await.map(drop),
            Database::Plain(db) => db.use_ns(namespace).use_db(database).await.map(drop),
        }
    }

    /// Signs this session in as a database user.
    pub(super) async fn sign_in(&self, user: DatabaseUser) -> surrealdb::Result<()> {
        match self {
            Database::Tuned(db) => db.signin(user).await.map(drop),
            Database::Plain(db) => db.signin(user).await.map(drop),
        }
    }
}

impl Work {
    /// A statement inside the transaction.
    pub(super) fn query<'a>(&'a self, text: impl Into<Cow<'a, str>>) -> Statement<'a> {
        let target = match self {
            Work::Tuned(tx) => Target::TunedTransaction(tx),
            Work::Plain(tx) => Target::PlainTransaction(tx),
        };
        Statement {
            target,
            text: text.into(),
            variables: Variables::new(),
        }
    }

    /// Makes everything durable.
    pub(super) async fn commit(self) -> surrealdb::Result<()> {
        match self {
            Work::Tuned(tx) => tx.commit().await.map(drop),
            Work::Plain(tx) => tx.commit().await.map(drop),
        }
    }

    /// Takes everything back.
    pub(super) async fn cancel(self) -> surrealdb::Result<()> {
        match self {
            Work::Tuned(tx) => tx.cancel().await.map(drop),
            Work::Plain(tx) => tx.cancel().await.map(drop),
        }
    }
}

impl<'a> Statement<'a> {
    /// Gives a parameter its value.
    pub(super) fn bind<T: SurrealValue>(mut self, (name, value): (&str, T)) -> Self {
        self.variables.insert(name.to_owned(), value);
        self
    }
}

impl<'a> IntoFuture for Statement<'a> {
    type Output = surrealdb::Result<IndexedResults>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Statement {
            target,
            text,
            variables,
        } = self;
        Box::pin(async move {
            match target {
                Target::Tuned(db) => db.query(text).bind(variables).await,
                Target::Plain(db) => db.query(text).bind(variables).await,
                Target::TunedTransaction(tx) => tx.query(text).bind(variables).await,
                Target::PlainTransaction(tx) => tx.query(text).bind(variables).await,
            }
        })
    }
}
