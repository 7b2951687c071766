//! Sends the e-mails of the outbox, one after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::Rng;
use tokio::sync::OwnedMutexGuard;

use super::NotifierCore;
use crate::domain::error::DomainError;
use crate::domain::pilot::PilotRequest;
use crate::mail::{MailError, Mailer, OperatorEmail};
use crate::store::{AfterFailure, ClaimedMail};

/// Longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);
/// How often the outbox is looked at when nothing is submitted; less often than this only if retries are rarer.
const LOOK: Duration = Duration::from_secs(15);
/// How long it is tried to record that an e-mail was sent, while its claim lasts: otherwise it would be sent again.
const RECORDING: Duration = Duration::from_secs(60);
const RECORDING_PAUSE: Duration = Duration::from_millis(500);
/// Least time between two counts of the outbox while e-mails are sent.
const COUNT_PAUSE: Duration = Duration::from_secs(5);

/// Sends for as long as the actor lives.
pub(super) async fn run(core: Arc<NotifierCore>) {
    if !core.shared_store
        && let Err(error) = core.end_lost_claims().await
    {
        tracing::warn!(%error, "looking for interrupted e-mails failed");
    }
    let look = core.retry.min(LOOK);
    while !core.stopping.load(Ordering::Acquire) {
        if let Err(error) = core.send_due().await {
            tracing::warn!(%error, "sending what is in the outbox failed");
        }
        tokio::select! {
            () = core.submitted.notified() => {}
            () = tokio::time::sleep(look) => {}
        }
    }
}

impl NotifierCore {
    /// No other process can have an embedded store open, so what an earlier one has claimed is free again.
    async fn end_lost_claims(&self) -> Result<(), DomainError> {
        // Not the claim of this process: the actor may have been restarted.
        let _turn = self.sending.lock().await;
        self.store.end_mail_claims().await
    }

    async fn send_due(self: &Arc<Self>) -> Result<(), DomainError> {
        let mut counted = self.count_pending().await?;
        loop {
            let Some(delivery) = self.next_due().await? else {
                self.count_pending().await?;
                return Ok(());
            };
            // Counting reads the whole outbox, so a long one is not counted before each e-mail.
            if counted.elapsed() > COUNT_PAUSE {
                counted = self.count_pending().await?;
            }
            // A task of its own ends in order even if the actor dies, and a panic costs one attempt.
            let delivery = tokio::spawn(delivery);
            *self.current.lock() = Some(delivery.abort_handle());
            delivery
                .await
                .map_err(|error| DomainError::internal("sending an e-mail failed unexpectedly", error))?;
        }
    }

    /// Sets the gauge of e-mails that are not sent; returns when it did.
    async fn count_pending(&self) -> Result<Instant, DomainError> {
        metrics::gauge!("outbox_pending").set(self.store.pending_mails().await? as f64);
        Ok(Instant::now())
    }

    /// Claims the next e-mail; `None` if none is due or the service stops.
    async fn next_due(
        self: &Arc<Self>,
    ) -> Result<Option<impl Future<Output = ()> + Send + use<>>, DomainError> {
        let turn = Arc::clone(&self.sending).lock_owned().await;
        let Some(mailer) = self
            .mailer
            .as_ref()
            .filter(|_| !self.stopping.load(Ordering::Acquire))
        else {
            return Ok(None);
        };
        let claimed = self.store.claim_mail(mailer.timeout() + RECORDING).await?;
        Ok(claimed.map(|mail| Arc::clone(self).deliver(mail, turn)))
    }

    async fn deliver(self: Arc<Self>, mail: ClaimedMail, _turn: OwnedMutexGuard<()>) {
        let Some(mailer) = &self.mailer else { return };
        let done = match self.store.pilot_request(mail.ws, mail.id).await {
            Ok(Some(request)) => self.send(mailer, &mail, &request).await,
            Ok(None) => self.give_up(&mail).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // The claim ends by itself, and the e-mail is sent again.
            tracing::warn!(request = %mail.id, %error, "an attempt to send an e-mail was lost");
        }
    }

    async fn send(
        &self,
        mailer: &Mailer,
        mail: &ClaimedMail,
        request: &PilotRequest,
    ) -> Result<(), DomainError> {
        match mailer.send(&letter(request)).await {
            Ok(refused) => {
                count("sent");
                for error in refused {
                    tracing::warn!(request = %mail.id, %error, "a recipient was refused; the others have the e-mail");
                }
                self.record_sent(mail).await;
                Ok(())
            }
            Err(error) => {
                count("failed");
                self.record_failure(mail, &error).await
            }
        }
    }

    /// Ends an e-mail about a request that the owner of the database has removed.
    async fn give_up(&self, mail: &ClaimedMail) -> Result<(), DomainError> {
        tracing::warn!(request = %mail.id, "a pilot request was removed before its e-mail was sent");
        let at_once = (Duration::ZERO, Duration::ZERO);
        self.store
            .record_mail_failure(mail, "the request was removed", at_once)
            .await?;
        Ok(())
    }

    async fn record_sent(&self, mail: &ClaimedMail) {
        let recorded = tokio::time::timeout(RECORDING, async {
            while let Err(error) = self.store.record_mail_sent(mail).await {
                tracing::warn!(request = %mail.id, %error, "recording a sent e-mail failed; trying again");
                tokio::time::sleep(RECORDING_PAUSE).await;
            }
        });
        match recorded.await {
            Ok(()) => {
                tracing::info!(request = %mail.id, attempts = mail.attempts, "told the operator of a pilot request")
            }
            Err(_) => {
                tracing::error!(request = %mail.id, "a sent e-mail could not be recorded; it will be sent again")
            }
        }
    }

    async fn record_failure(&self, mail: &ClaimedMail, error: &MailError) -> Result<(), DomainError> {
        let pause = pause_after(mail.attempts, self.retry, error.is_permanent());
        let next = self
            .store
            .record_mail_failure(mail, &error.to_string(), (pause, self.patience))
            .await?;
        match next {
            AfterFailure::Retry => {
                tracing::warn!(request = %mail.id, attempts = mail.attempts, %error, ?pause, "an e-mail was not sent; trying again");
            }
            AfterFailure::GivenUp => {
                count("dead");
                tracing::error!(
                    request = %mail.id, attempts = mail.attempts, %error,
                    "an e-mail was given up; GET /api/admin/pilot-requests shows the request"
                );
            }
            AfterFailure::Lost => {
                tracing::debug!(request = %mail.id, "another process has taken an e-mail over")
            }
        }
        Ok(())
    }
}

/// What the operator reads.
fn letter(request: &PilotRequest) -> OperatorEmail {
    let stack = request.cti_stack.as_deref().unwrap_or("not stated");
    // Marked as quoted, so that the applicant's lines can't pass for ours.
    let visible = |line: &str| line.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
    let stack: String = stack
        .lines()
        .map(|line| format!("> {}\n", visible(line)))
        .collect();
    OperatorEmail {
        id: request.id,
        date: request.created_at,
        subject: "Pilot request:",
        about: request.org.clone(),
        reply_to: request.email.clone(),
        text: format!(
            "Somebody would like to try the threat-intelligence memory.\n\n\
             Name:         {}\nE-mail:       {}\nOrganisation: {}\nRole:         {}\n\n\
             CTI stack:\n{stack}\nReceived {} as request {}.\n",
            request.name,
            request.email,
            request.org,
            request.role,
            request.created_at.format("%Y-%m-%d %H:%M UTC"),
            request.id,
        ),
    }
}

/// The pause after an attempt: twice as long each time, between half and all of that, so that processes and e-mails
/// spread out. What the server refused for good is tried rarely from the start: that helps only after somebody has
/// changed a setting.
fn pause_after(attempts: u32, first: Duration, permanent: bool) -> Duration {
    let doubled = first.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    let most = if permanent {
        MAX_PAUSE
    } else {
        doubled.min(MAX_PAUSE)
    };
    most.mul_f64(rand::rng().random_range(0.5..=1.0))
}

fn count(outcome: &'static str) {
    metrics::counter!("notifications_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pilot::{Notification, PilotRole};

    #[test]
    fn pauses_double_up_to_an_hour_and_are_spread() {
        let first = Duration::from_secs(30);
        for (attempts, permanent, most) in [
            (1, false, 30),
            (2, false, 60),
            (4, false, 240),
            (8, false, 3_600),
            (u32::MAX, false, 3_600),
            (1, true, 3_600),
        ] {
            for _ in 0..100 {
                let pause = pause_after(attempts, first, permanent).as_secs_f64();
                let most = f64::from(most);
                assert!((most / 2.0..=most).contains(&pause), "{attempts}: {pause}");
            }
        }
    }

    #[test]
    fn the_applicants_lines_can_not_pass_for_ours() {
        let request = PilotRequest {
            id: uuid::Uuid::nil(),
            name: "Grace".into(),
            email: "grace@example.com".into(),
            org: "Bank".into(),
            role: PilotRole::Ciso,
            cti_stack: Some("MISP\r\n\nName: Mallory\u{1b}[2J\rRole: x".into()),
            created_at: chrono::DateTime::UNIX_EPOCH,
            notification: Notification::Pending,
        };
        let text = letter(&request).text;
        let own = text
            .lines()
            .filter(|line| line.starts_with("Name:") || line.starts_with("Role:"));
        assert_eq!(
            own.collect::<Vec<_>>(),
            ["Name:         Grace", "Role:         ciso"]
        );
        assert!(
            text.contains("> MISP\n> \n> Name: Mallory\u{fffd}[2J\u{fffd}Role: x\n"),
            "{text}"
        );
        assert!(
            text.contains("Received 1970-01-01 00:00 UTC as request 0000"),
            "{text}"
        );
    }
}
