//! Where the service may connect to: URLs as they are written, classes of addresses, and the rules of each kind of client.
//! Pure: names are resolved by the client (`outbound`), which checks every address by the same rules.

mod address;
mod pattern;
mod policy;
mod rule;
mod spelling;

pub use self::pattern::{HostPattern, HostPatternError};
pub use self::policy::Policy;
pub use self::rule::{Refusal, Rule};
pub use self::spelling::is_loopback;
