//! Days of the calendar, as `[[policy.allow]]` names them.

use std::fmt;

/// A day, ordered in time.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// Reads `2027-01-31` (ISO 8601); anything else, and days that no calendar has, is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let mut number = |digits: usize| -> Option<u16> {
            let part = parts.next()?;
            let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse().ok())?
        };
        let (year, month, day) = (number(4)?, number(2)?, number(2)?);
        let exists = (1..=12).contains(&month) && (1..=days(year, month)).contains(&day);
        exists.then_some(Self {
            year,
            month: u8::try_from(month).ok()?,
            day: u8::try_from(day).ok()?,
        })
    }

    /// Day that follows 1970-01-01 by so many days (in UTC, as clocks count).
    pub fn after_1970(mut days_left: u64) -> Self {
        let mut date = Self {
            year: 1970,
            month: 1,
            day: 1,
        };
        loop {
            let length = u64::from(days(date.year, date.month.into()));
            if days_left < length || date.year == u16::MAX {
                // Less than the 31 days of a month.
                date.day += u8::try_from(days_left.min(30)).unwrap_or(0);
                return date;
            }
            days_left -= length;
            date.month = date.month % 12 + 1;
            date.year += u16::from(date.month == 1);
        }
    }
}

/// Length of a month in days.
fn days(year: u16, month: u16) -> u16 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u16::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_and_ordered() {
        for text in ["2027-01-31", "2028-02-29", "2000-02-29", "0001-12-01"] {
            assert_eq!(Date::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "2027",
            "2027-1-31",
            "27-01-31",
            "2027-02-29",
            "2100-02-29",
            "2027-13-01",
            "2027-00-01",
            "2027-04-31",
            "2027-01-00",
            "2027-01-01x",
            "2027-01-01-01",
            "+027-01-01",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        assert!(Date::parse("2027-01-31") < Date::parse("2027-02-01"));
    }

    #[test]
    fn clocks_count_days_from_1970() {
        // From `date -u -d @N +%F`, N / 86400.
        for (days, text) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (364, "1970-12-31"),
            (365, "1971-01-01"),
            (11_016, "2000-02-29"),
            (20_819, "2027-01-01"),
        ] {
            assert_eq!(Date::after_1970(days).to_string(), text);
        }
        assert_eq!(Date::after_1970(u64::MAX).year, u16::MAX);
    }
}
