//! What happened in each stretch of time.

use std::collections::HashMap;

use super::result::{Window, WindowClass};

/// So many pairs of a window and a class are kept; beyond that the windows double their width.
const MOST: usize = 1 << 17;

/// Events and microseconds by the number of a window and a class's id.
#[derive(Debug)]
pub(super) struct Windows {
    width_us: i64,
    cells: HashMap<(i64, u64), Cell>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    events: u64,
    query_time_us: u128,
}

impl Windows {
    /// Windows of that width.
    pub fn new(width_s: u64) -> Self {
        let seconds = i64::try_from(width_s.max(1)).unwrap_or(i64::MAX);
        Self {
            width_us: seconds.saturating_mul(1_000_000),
            cells: HashMap::new(),
        }
    }

    /// Counts an event.
    pub fn add(&mut self, class: u64, at_us: i64, query_time_us: u64) {
        self.count(
            at_us.div_euclid(self.width_us),
            class,
            1,
            u128::from(query_time_us),
        );
    }

    fn count(&mut self, window: i64, class: u64, events: u64, query_time_us: u128) {
        let cell = self.cells.entry((window, class)).or_default();
        cell.events += events;
        cell.query_time_us += query_time_us;
        while self.cells.len() > MOST {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width_us = self.width_us.saturating_mul(2);
        for ((window, class), cell) in std::mem::take(&mut self.cells) {
            let wide = self.cells.entry((window.div_euclid(2), class)).or_default();
            wide.events += cell.events;
            wide.query_time_us += cell.query_time_us;
        }
    }

    /// Counts what other windows counted, whose width is this one's, doubled or halved.
    fn add_all(&mut self, windows: &[Window]) {
        for window in windows {
            while self.width_us < window.end_us - window.start_us {
                self.widen();
            }
            for class in &window.classes {
                let number = window.start_us.div_euclid(self.width_us);
                self.count(number, class.id, class.events, class.query_time_us);
            }
        }
    }

    /// The windows in which something happened, in order of time.
    pub fn done(self) -> Vec<Window> {
        let mut cells: Vec<_> = self.cells.into_iter().collect();
        cells.sort_unstable_by_key(|(key, _)| *key);
        let mut windows: Vec<Window> = Vec::new();
        for (
            (number, id),
            Cell {
                events,
                query_time_us,
            },
        ) in cells
        {
            let start_us = number.saturating_mul(self.width_us);
            if windows.last().is_none_or(|last| last.start_us != start_us) {
                let end_us = start_us.saturating_add(self.width_us);
                windows.push(Window {
                    start_us,
                    end_us,
                    events: 0,
                    query_time_us: 0,
                    classes: Vec::new(),
                });
            }
            if let Some(window) = windows.last_mut() {
                window.events += events;
                window.query_time_us += query_time_us;
                window.classes.push(WindowClass {
                    id,
                    events,
                    query_time_us,
                });
            }
        }
        windows
    }
}

/// The windows of two logs together.
pub(super) fn merged(one: &[Window], other: &[Window]) -> Vec<Window> {
    let width_us = |windows: &[Window]| {
        windows
            .first()
            .map(|window| window.end_us - window.start_us)
    };
    let Some(width_us) = width_us(one).into_iter().chain(width_us(other)).max() else {
        return Vec::new();
    };
    let mut windows = Windows {
        width_us,
        cells: HashMap::new(),
    };
    windows.add_all(one);
    windows.add_all(other);
    windows.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_in_the_window_of_its_time() {
        let mut windows = Windows::new(60);
        for (class, at_s) in [(1, 0), (1, 59), (2, 60), (1, -1)] {
            windows.add(class, at_s * 1_000_000, 5);
        }
        let windows = windows.done();
        let seen: Vec<_> = windows
            .iter()
            .map(|w| (w.start_us / 1_000_000, w.events, w.query_time_us))
            .collect();
        assert_eq!(seen, [(-60, 1, 5), (0, 2, 10), (60, 1, 5)]);
    }

    #[test]
    fn too_many_windows_grow_wider_and_lose_nothing() {
        let (mut all, mut odd, mut even) = (Windows::new(1), Windows::new(1), Windows::new(1));
        for second in 0..400_000 {
            for windows in [&mut all, if second % 2 == 0 { &mut even } else { &mut odd }] {
                windows.add(7, second * 1_000_000, 3);
            }
        }
        let (all, parts) = (all.done(), merged(&odd.done(), &even.done()));
        assert_eq!(all, parts);
        assert_eq!(all.iter().map(|window| window.events).sum::<u64>(), 400_000);
        assert_eq!(all[0].end_us - all[0].start_us, 4_000_000);
    }
}
