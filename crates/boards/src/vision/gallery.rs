//! The pictures boards sent last, kept for whoever asks. Bounded: the oldest go first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sinew_tool::{DeviceKey, Picture};

/// Some thousand usual photos, or a dozen of the largest.
const BYTES: usize = 64 << 20;
const PICTURES: usize = 1024;

#[derive(Default)]
pub(crate) struct Gallery {
    kept: Mutex<StoredPictures>,
}

#[derive(Default)]
struct StoredPictures {
    /// By device, with the number of each in the order they came.
    pictures: HashMap<DeviceKey, Vec<(u64, Picture)>>,
    bytes: usize,
    count: usize,
    last: u64,
}

impl Gallery {
    /// The pictures of a device, one of a name.
    pub(crate) fn of(&self, key: &DeviceKey) -> Vec<Picture> {
        let kept = self.kept();
        let pictures = kept.pictures.get(key).into_iter().flatten();
        pictures.map(|(_, picture)| picture.clone()).collect()
    }

    /// Keeps a picture in place of the last one of its name.
    pub(crate) fn keep(&self, key: &DeviceKey, picture: Picture) {
        let mut kept = self.kept();
        kept.remove(key, &picture.name);
        kept.last += 1;
        kept.count += 1;
        kept.bytes += picture.bytes.len();
        let number = kept.last;
        kept.pictures.entry(key.clone()).or_default().push((number, picture));
        while kept.bytes > BYTES || kept.count > PICTURES {
            let all = kept.pictures.iter().flat_map(|(key, all)| all.iter().map(move |one| (key, one)));
            let Some((key, name)) = all
                .min_by_key(|(_, (number, _))| *number)
                .map(|(key, (_, picture))| (key.clone(), picture.name.clone()))
            else {
                return;
            };
            kept.remove(&key, &name);
        }
    }

    fn kept(&self) -> MutexGuard<'_, StoredPictures> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredPictures {
    fn remove(&mut self, key: &DeviceKey, name: &str) {
        let Some(pictures) = self.pictures.get_mut(key) else { return };
        if let Some(place) = pictures.iter().position(|(_, picture)| picture.name == name) {
            self.bytes -= pictures.swap_remove(place).1.bytes.len();
            self.count -= 1;
        }
        if pictures.is_empty() {
            self.pictures.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(name: &'static str, bytes: usize) -> Picture {
        Picture { name: name.into(), mime_type: "image/jpeg".into(), bytes: vec![0; bytes].into() }
    }

    #[test]
    fn the_last_picture_of_a_name_is_kept() {
        let gallery = Gallery::default();
        let key = DeviceKey("board:a".to_owned());
        gallery.keep(&key, picture("photo", 1));
        gallery.keep(&key, picture("screen", 2));
        gallery.keep(&key, picture("photo", 3));
        let mut sizes: Vec<_> = gallery.of(&key).iter().map(|one| (one.name.to_string(), one.bytes.len())).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [("photo".to_owned(), 3), ("screen".to_owned(), 2)]);
        assert!(gallery.of(&DeviceKey("board:b".to_owned())).is_empty());
    }

    #[test]
    fn the_oldest_pictures_go_first_when_there_is_no_room() {
        let gallery = Gallery::default();
        let key = |index: usize| DeviceKey(format!("board:{index}"));
        (0..17).for_each(|index| gallery.keep(&key(index), picture("photo", 4 << 20)));
        assert!(gallery.of(&key(0)).is_empty() && !gallery.of(&key(1)).is_empty());
        (0..PICTURES).for_each(|index| gallery.keep(&key(100 + index), picture("photo", 1)));
        assert!(gallery.of(&key(16)).is_empty());
        let kept = gallery.kept();
        assert_eq!((kept.count, kept.bytes), (PICTURES, PICTURES));
    }
}
