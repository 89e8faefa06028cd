//! Placeholder for the directory in builds without the feature `files`.

use std::ffi::CStr;

use super::stream::Backing;

/// No directory.
pub(crate) enum Root {}

impl Root {
    pub fn fopen(&self, _path: &CStr, _mode: &CStr) -> Option<Backing> {
        match *self {}
    }

    pub fn remove(&self, _path: &CStr) -> bool {
        match *self {}
    }

    pub fn rename(&self, _old: &CStr, _new: &CStr) -> bool {
        match *self {}
    }
}
