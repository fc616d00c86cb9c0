//! Headers: an ordered multi-map of name to bytes.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// One header: a name and bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Header {
    name: Box<str>,
    value: Bytes,
}

impl Header {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(&self) -> &Bytes {
        &self.value
    }

    /// Returns the value as text, where it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} bytes", self.name, self.value.len())
    }
}

/// Headers in the order in which they were added. Names may repeat; nothing is merged, sorted or re-encoded.
///
/// Cloning is cheap; the first change after a clone copies the list.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Headers(Option<Arc<Vec<Header>>>);

impl Headers {
    /// No headers; does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Appends a header, whatever its name already stands for.
    pub fn push(&mut self, name: impl Into<Box<str>>, value: impl Into<Bytes>) {
        let header = Header { name: name.into(), value: value.into() };
        Arc::make_mut(self.0.get_or_insert_default()).push(header);
    }

    /// Returns the first header of that name. O(n).
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&Header> {
        self.iter().find(|header| header.name() == name)
    }

    /// Returns every header of that name, in order. O(n).
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Header> {
        self.iter().filter(move |header| header.name() == name)
    }

    /// Removes every header of which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&Header) -> bool) {
        let Some(list) = self.0.as_mut() else { return };
        if list.iter().all(&mut keep) {
            return;
        }
        Arc::make_mut(list).retain(keep);
    }

    /// Returns the headers in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Header> {
        self.as_slice().iter()
    }

    /// Returns the headers as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[Header] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Returns how many headers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// Returns the bytes of all names and values together. O(n).
    #[must_use]
    pub fn size(&self) -> usize {
        self.iter().map(|header| header.name.len() + header.value.len()).sum()
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = &'a Header;
    type IntoIter = std::slice::Iter<'a, Header>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<Box<str>>, V: Into<Bytes>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        let mut all = Self::new();
        for (name, value) in headers {
            all.push(name, value);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_and_their_order_are_kept() {
        let headers: Headers = [("x", "1"), ("o", "3"), ("x", "2")].into_iter().collect();
        let values: Vec<_> = headers.all("x").map(|h| h.text().unwrap()).collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(headers.as_slice()[1].name(), "o");
        assert_eq!(headers.size(), 6);
    }

    #[test]
    fn a_change_after_a_clone_leaves_the_clone_alone() {
        let mut one: Headers = [("a", "1")].into_iter().collect();
        let two = one.clone();
        one.push("b", "2");
        one.retain(|h| h.name() != "a");
        assert_eq!((one.len(), two.len()), (1, 1));
        assert_eq!(two.first("a").unwrap().value(), "1");
    }
}
