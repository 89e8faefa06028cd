//! Reasons why an image, or some of its libraries, stay as they are.

/// The reason why an image stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Continues the name of the image: `needs libx.so.1, for which there are no stubs`.
    pub reason: String,
    /// The next step.
    pub help: Option<String>,
    /// Names in DT_NEEDED without whose replacement the image can be repaired.
    pub keeps: Vec<String>,
    /// Whether stubs can replace no library of the image: it needs no repair, which others of the package need.
    pub is_unrelated: bool,
}

impl Refusal {
    /// Adds a part to the next step.
    pub fn or(mut self, part: &str) -> Self {
        self.help = Some(match self.help {
            Some(help) => format!("{help}; {part}"),
            None => part.to_owned(),
        });
        self
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self {
            reason,
            help: None,
            keeps: Vec::new(),
            is_unrelated: false,
        }
    }
}
