//! Features two Holdfasts agree on: the additions to the base wire.

use serde::{Deserialize, Serialize};

/// A set of link features. Unknown names are ignored, so a newer peer can offer more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u16);

/// One feature of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Frames carry numbers, gaps are noticed.
    Seq,
    /// Results are acknowledged after commit.
    Ack,
    /// The daemon answers `resume_calls` with what it knows of each id.
    Report,
    /// Progress of long calls.
    Progress,
    /// The relay names the grace.
    Grace,
    /// Life is bytes: 5 s heartbeats, 10 s silence.
    Live,
    /// Big results in chunks.
    Chunk,
    /// Announced sleep.
    Suspend,
}

impl Feature {
    /// All features of this build.
    pub const ALL: [Feature; 8] = [
        Feature::Seq,
        Feature::Ack,
        Feature::Report,
        Feature::Progress,
        Feature::Grace,
        Feature::Live,
        Feature::Chunk,
        Feature::Suspend,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Feature::Seq => "seq",
            Feature::Ack => "ack",
            Feature::Report => "report",
            Feature::Progress => "progress",
            Feature::Grace => "grace",
            Feature::Live => "live",
            Feature::Chunk => "chunk",
            Feature::Suspend => "suspend",
        }
    }
}

impl Features {
    /// No feature: the base wire.
    pub const NONE: Features = Features(0);

    /// Every feature of this build.
    pub fn all() -> Features {
        Feature::ALL.into_iter().fold(Features::NONE, Features::with)
    }

    /// This set and one more.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Features {
        Features(self.0 | 1 << feature as u16)
    }

    /// This set without one.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Features {
        Features(self.0 & !(1 << feature as u16))
    }

    /// Whether a feature was agreed.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u16) != 0
    }

    /// What both sides know.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }
}

impl Serialize for Features {
    fn serialize<S: serde::Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ser.collect_seq(Feature::ALL.into_iter().filter(|f| self.has(*f)).map(Feature::as_str))
    }
}

impl<'de> Deserialize<'de> for Features {
    fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let names = Vec::<std::borrow::Cow<'de, str>>::deserialize(de)?;
        Ok(Feature::ALL
            .into_iter()
            .filter(|f| names.iter().any(|n| n == f.as_str()))
            .fold(Features::NONE, Features::with))
    }
}
