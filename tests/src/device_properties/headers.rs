//! Fields of cudaDeviceProp and attributes of devices in the headers, and the table of both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use crate::{Result, repository};

/// Attribute that has the value of a field: `tests/device-properties/attributes.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Number in `cudaDeviceAttr`.
    pub attribute: i32,
    enumerator: String,
    /// First driver that knows it, as cudaDriverGetVersion encodes versions.
    #[serde(default)]
    pub driver: i32,
    /// Value of the field with older drivers.
    #[serde(default)]
    pub otherwise: i32,
}

impl Attribute {
    /// Value in the fakes.
    pub fn value(&self) -> i32 {
        1000 + self.attribute
    }
}

/// The table, by field.
pub fn attributes() -> Result<BTreeMap<String, Attribute>> {
    let path = repository().join("tests/device-properties/attributes.toml");
    Ok(toml::from_str(&fs::read_to_string(path)?)?)
}

/// Declarations of one version of driver_types.h.
pub struct Headers {
    /// As in `header-version`.
    pub version: String,
    fields: Vec<String>,
    /// Numbers by enumerator, without `cudaDevAttr`.
    attributes: BTreeMap<String, i32>,
}

impl Headers {
    /// Reads the file of this version.
    pub fn read(version: &str, driver_types: &Path) -> Result<Self> {
        let text = fs::read_to_string(driver_types)?;
        let text = Regex::new(r"(?s)/\*.*?\*/")?.replace_all(&text, "");
        let struct_pattern =
            Regex::new(r"(?s)struct\s+__device_builtin__\s+cudaDeviceProp\s*\{(.*?)\}")?;
        let properties = struct_pattern.captures(&text).ok_or("no cudaDeviceProp")?;
        let mut headers = Self {
            version: version.to_owned(),
            fields: Vec::new(),
            attributes: BTreeMap::new(),
        };
        let field_pattern = Regex::new(r"(\w+)\s*(?:\[\d+\])?\s*;")?;
        for captures in field_pattern.captures_iter(&properties[1]) {
            headers.fields.push(captures[1].to_owned());
        }
        let attribute_pattern = Regex::new(r"\bcudaDevAttr(\w+)\s*=\s*(\d+)")?;
        for captures in attribute_pattern.captures_iter(&text) {
            let number = captures[2].parse()?;
            headers.attributes.insert(captures[1].to_owned(), number);
        }
        Ok(headers)
    }

    /// Fields of the struct but `reserved`, `reserved1`, ...
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.fields
            .iter()
            .map(String::as_str)
            .filter(|name| !is_reserved(name))
    }

    /// Text of fields.inc.
    pub fn fields_inc(&self, attributes: &BTreeMap<String, Attribute>) -> String {
        let mut text = String::new();
        for name in &self.fields {
            text += &match attributes.get(name) {
                _ if is_reserved(name) => format!("RESERVED({name})\n"),
                Some(row) => format!("ATTRIBUTE_FIELD({name}, {})\n", row.attribute),
                None => format!("FIELD({name})\n"),
            };
        }
        text
    }

    /// Fails if the table contradicts this version's names of the attributes.
    pub fn check(&self, attributes: &BTreeMap<String, Attribute>) {
        for (field, row) in attributes {
            let number = self.attributes.get(&row.enumerator);
            assert!(
                number.is_none_or(|number| *number == row.attribute),
                "{field} in {}: {number:?}",
                self.version
            );
        }
    }
}

/// `reservedSharedMemPerBlock` is not.
fn is_reserved(name: &str) -> bool {
    name.strip_prefix("reserved")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}
