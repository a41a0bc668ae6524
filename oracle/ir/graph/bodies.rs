//! The bodies of a graph, by the attributes that hold them.

use super::Graph;
use rustc_hash::FxHashMap;
use std::ops::Deref;
use std::sync::Arc;

/// Attributes and the bodies that they hold, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Bodies {
    list: Vec<(String, Arc<Graph>)>,
    /// Where the first of each name is.
    by_name: FxHashMap<String, usize>,
}

impl Bodies {
    /// The body that an attribute holds; the first, should it hold several.
    pub fn get(&self, attribute: &str) -> Option<&Arc<Graph>> {
        Some(&self.list.get(*self.by_name.get(attribute)?)?.1)
    }

    /// Adds a body.
    pub fn push(&mut self, (attribute, body): (String, Arc<Graph>)) {
        self.by_name.entry(attribute.clone()).or_insert(self.list.len());
        self.list.push((attribute, body));
    }

    /// Leaves only what `keeps` says.
    pub fn retain(&mut self, keeps: impl FnMut(&(String, Arc<Graph>)) -> bool) {
        let list = std::mem::take(self).list;
        self.extend(list.into_iter().filter(keeps));
    }

    /// The bodies, to be changed in their places.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Arc<Graph>> {
        self.list.iter_mut().map(|(_, body)| body)
    }
}

impl Deref for Bodies {
    type Target = [(String, Arc<Graph>)];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl Extend<(String, Arc<Graph>)> for Bodies {
    fn extend<T: IntoIterator<Item = (String, Arc<Graph>)>>(&mut self, bodies: T) {
        bodies.into_iter().for_each(|body| self.push(body));
    }
}

impl FromIterator<(String, Arc<Graph>)> for Bodies {
    fn from_iter<T: IntoIterator<Item = (String, Arc<Graph>)>>(bodies: T) -> Bodies {
        let mut all = Bodies::default();
        all.extend(bodies);
        all
    }
}

impl<'b> IntoIterator for &'b Bodies {
    type Item = &'b (String, Arc<Graph>);
    type IntoIter = std::slice::Iter<'b, (String, Arc<Graph>)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// Attributes stay what they are.
impl<'b> IntoIterator for &'b mut Bodies {
    type Item = (&'b String, &'b mut Arc<Graph>);
    type IntoIter = std::iter::Map<
        std::slice::IterMut<'b, (String, Arc<Graph>)>,
        fn(&'b mut (String, Arc<Graph>)) -> (&'b String, &'b mut Arc<Graph>),
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter_mut().map(|(attribute, body)| (&*attribute, body))
    }
}
