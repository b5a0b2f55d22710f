//! Files in and out: bounded reading, and writing that leaves a whole file or none.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// Most bytes read from one file.
pub const MAX_INPUT: u64 = 4 << 30;

/// The contents of an input and its name for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path as given, or `<stdin>`.
    pub name: String,
    /// The bytes; never empty or blank alone.
    pub bytes: Vec<u8>,
}

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("FILE-001: cannot read {name}: {error}; check the path and its permissions")]
    Unreadable {
        /// The file.
        name: String,
        /// The system's reason.
        error: io::Error,
    },
    /// A folder or a device where a file is wanted.
    #[error("FILE-002: {name} is {what}, not a file; name a file, or - for standard input")]
    NotAFile {
        /// The path.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// Nothing in it, or blanks alone.
    #[error("FILE-003: {name} is empty; name a file with contents")]
    Empty {
        /// The file.
        name: String,
    },
    /// Too much in it.
    #[error("FILE-004: {name} has more than {limit} bytes; split it")]
    TooLarge {
        /// The file.
        name: String,
        /// The limit.
        limit: u64,
    },
    /// An output that could not be written; nothing of it is left behind.
    #[error("FILE-005: cannot write {name}: {error}; check the folder and its permissions")]
    Unwritable {
        /// The file.
        name: String,
        /// The system's reason.
        error: io::Error,
    },
}

/// Reads a file, or standard input for `-`.
///
/// # Errors
///
/// [`FileError`] when it cannot be read, is a folder or device, is empty, or holds more than [`MAX_INPUT`].
pub fn read(path: &Path) -> Result<Source, FileError> {
    if path == Path::new("-") {
        return limited("<stdin>".to_owned(), &mut io::stdin().lock());
    }
    let (name, mut file) = open(path)?;
    limited(name, &mut file)
}

/// Opens a file that is to be read in parts; its name for messages, and the file.
///
/// # Errors
///
/// [`FileError`] when it cannot be opened or is a folder or device.
pub fn open(path: &Path) -> Result<(String, fs::File), FileError> {
    let name = path.display().to_string();
    let unreadable = |error| FileError::Unreadable { name: name.clone(), error };
    let meta = fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        return Err(FileError::NotAFile { name, what: "a folder" });
    }
    if is_device(&meta) {
        return Err(FileError::NotAFile { name, what: "a device" });
    }
    let file = fs::File::open(path).map_err(unreadable)?;
    Ok((name, file))
}

#[cfg(unix)]
fn is_device(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let t = meta.file_type();
    // A device may never end; a pipe ends when its writer does.
    t.is_char_device() || t.is_block_device() || t.is_socket()
}

#[cfg(not(unix))]
fn is_device(_: &fs::Metadata) -> bool {
    false
}

fn limited(name: String, from: &mut dyn Read) -> Result<Source, FileError> {
    let mut bytes = Vec::new();
    match from.take(MAX_INPUT + 1).read_to_end(&mut bytes) {
        Err(error) => Err(FileError::Unreadable { name, error }),
        Ok(_) if is_blank(&bytes) => Err(FileError::Empty { name }),
        Ok(n) if n as u64 > MAX_INPUT => Err(FileError::TooLarge { name, limit: MAX_INPUT }),
        Ok(_) => Ok(Source { name, bytes }),
    }
}

/// Whether there is nothing but white space, after a byte order mark or without one.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).iter().all(u8::is_ascii_whitespace)
}

/// Writes a file as a whole: to a temporary file in the same folder, then renamed over `path`.
///
/// A link is followed, and what is no regular file (a device, a pipe) is written to directly. On failure the
/// old file, if any, stays as it was.
///
/// # Errors
///
/// [`FileError::Unwritable`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    place(path, bytes).map_err(|error| unwritable(path, error))
}

fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = real(path);
    if is_special(&target) {
        return fs::OpenOptions::new().write(true).open(&target)?.write_all(bytes);
    }
    let mut file = beside(&target)?;
    file.file.write_all(bytes)?;
    file.keep(&target)
}

/// The file a path leads to, whether it is there or not: links followed, folders resolved.
pub fn real(path: &Path) -> PathBuf {
    // As many links as a system follows.
    const LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(found) = fs::canonicalize(&path) {
            return found;
        }
        match fs::read_link(&path) {
            Ok(to) => path = folder(&path).join(to),
            Err(_) => break,
        }
    }
    match (fs::canonicalize(folder(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// The folder a file is in.
fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if p != Path::new("") => p.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Whether a path names standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Whether a path names a device or a pipe, which is written to as it is.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// Fails if a file could not be written, before there is anything to write.
///
/// # Errors
///
/// [`FileError::Unwritable`].
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    let target = real(path);
    if is_stdout(path) || is_special(&target) {
        return Ok(());
    }
    beside(&target).map(drop).map_err(|error| unwritable(path, error))
}

/// Fails if no file could have the name at the end of a path.
///
/// # Errors
///
/// [`FileError::Unwritable`].
pub fn check_name(path: &Path) -> Result<(), FileError> {
    short(path).map_err(|error| unwritable(path, error))
}

fn short(path: &Path) -> io::Result<()> {
    /// Bytes of a name that every common file system takes.
    const LONGEST: usize = 255;
    match path.file_name().map(std::ffi::OsStr::len) {
        Some(len) if len > LONGEST => {
            let why = format!("its name has {len} bytes, more than {LONGEST}");
            Err(io::Error::new(io::ErrorKind::InvalidFilename, why))
        }
        _ => Ok(()),
    }
}

fn unwritable(path: &Path, error: io::Error) -> FileError {
    FileError::Unwritable { name: path.display().to_string(), error }
}

/// Temporary files in being, for [`discard_unfinished`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes every file that is being written; for a process that is about to be ended by a signal.
pub fn discard_unfinished() {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // What cannot be removed now cannot be removed later either.
        let _ = fs::remove_file(path);
    }
}

/// A file that is gone when dropped, unless kept.
#[derive(Debug)]
struct Temporary {
    file: fs::File,
    path: Option<tempfile::TempPath>,
    listed: PathBuf,
}

impl Temporary {
    fn new(file: tempfile::NamedTempFile) -> Temporary {
        let listed = file.path().to_path_buf();
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(listed.clone());
        let (file, path) = file.into_parts();
        Temporary { file, path: Some(path), listed }
    }

    /// Puts the file, as a whole, at `target`.
    fn keep(mut self, target: &Path) -> io::Result<()> {
        self.file.sync_data()?;
        self.path.take().map_or(Ok(()), |path| path.persist(target).map_err(|e| e.error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        drop(self.path.take());
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|p| *p != self.listed);
    }
}

/// A temporary file in the folder of `target`.
fn beside(target: &Path) -> io::Result<Temporary> {
    if target.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    short(target)?;
    let folder = folder(target);
    if !folder.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no folder {}", folder.display()),
        ));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hadal-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The usual mode of a new file, less the process's mask; a file that is replaced keeps its own.
        let mode = fs::metadata(target).map_or(0o666, |m| m.permissions().mode());
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    // The name of the temporary file would only puzzle.
    let file = builder.tempfile_in(&folder).map_err(|e| io::Error::from(e.kind()))?;
    Ok(Temporary::new(file))
}

/// A file that is written in parts and appears, whole, when it is finished. Dropped before that, it leaves nothing.
#[derive(Debug)]
pub struct Draft {
    file: Temporary,
    target: PathBuf,
    name: String,
}

impl Draft {
    /// Begins a file that will stand at `path`; an old file there stays until the end.
    ///
    /// # Errors
    ///
    /// [`FileError::Unwritable`], also when `path` is a folder, a device or a pipe.
    pub fn begin(path: &Path) -> Result<Draft, FileError> {
        let name = path.display().to_string();
        let target = real(path);
        let file = if is_special(&target) {
            Err(io::Error::other("it is a device or a pipe, and this result is written in parts"))
        } else {
            beside(&target)
        };
        match file {
            Ok(file) => Ok(Draft { file, target, name }),
            Err(error) => Err(FileError::Unwritable { name, error }),
        }
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    ///
    /// [`FileError::Unwritable`].
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let file = &mut self.file.file;
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.write_all(bytes))
            .map_err(|error| FileError::Unwritable { name: self.name.clone(), error })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    ///
    /// [`FileError::Unwritable`].
    pub fn finish(self) -> Result<(), FileError> {
        self.file.keep(&self.target).map_err(|error| FileError::Unwritable { name: self.name, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_whole_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.bin");
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_yet_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (link, there) = (dir.path().join("link"), dir.path().join("there"));
        std::os::unix::fs::symlink("there", &link).unwrap();
        assert_eq!(real(&link), real(&there));
        assert_eq!(real(&dir.path().join("x/../y")), dir.path().join("x/../y"));
        write(&link, b"x").unwrap();
        assert_eq!(fs::read(&there).unwrap(), b"x");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        check_writable(&dir.path().join("new")).unwrap();
        assert!(check_writable(&dir.path().join("no/such")).is_err());
        assert!(check_writable(&dir.path().join("n".repeat(256))).is_err());
        assert!(check_writable(dir.path()).is_err());
        check_writable(Path::new("-")).unwrap();
        assert!(check_name(&Path::new("no/such").join("n".repeat(256))).is_err());
        check_name(&Path::new("no/such").join("n".repeat(255))).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let e = write(&dir.path().join("no/such/out"), b"x").unwrap_err();
        assert!(e.to_string().starts_with("FILE-005: cannot write "), "{e}");
        let e = write(dir.path(), b"x").unwrap_err();
        assert!(e.to_string().contains("it is a folder"), "{e}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_draft_appears_at_its_end_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.bin");
        let mut draft = Draft::begin(&path).unwrap();
        draft.write_at(2, b"cd").unwrap();
        draft.write_at(0, b"ab").unwrap();
        assert!(!path.exists());
        draft.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcd");
        drop(Draft::begin(&path).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        // What a signal leaves no time to drop.
        let unfinished = Draft::begin(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        let _ = fs::remove_file(&unfinished.file.listed);
        drop(unfinished);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(Draft::begin(dir.path()).unwrap_err().to_string().contains("it is a folder"));
    }

    #[test]
    fn what_is_no_input_is_said_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().display().to_string();
        let text = |p: &Path| read(p).unwrap_err().to_string();
        assert_eq!(
            text(dir.path()),
            format!("FILE-002: {name} is a folder, not a file; name a file, or - for standard input")
        );
        let empty = dir.path().join("empty");
        fs::write(&empty, b"").unwrap();
        assert_eq!(text(&empty), format!("FILE-003: {name}/empty is empty; name a file with contents"));
        fs::write(&empty, b" \n\t\n").unwrap();
        assert_eq!(text(&empty), format!("FILE-003: {name}/empty is empty; name a file with contents"));
        assert!(text(&dir.path().join("absent")).starts_with("FILE-001: cannot read "));
        #[cfg(unix)]
        assert!(text(Path::new("/dev/zero")).contains("is a device"));
    }
}
