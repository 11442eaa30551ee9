// Package incarnation keeps a process's will in a file for its successor under the same ID. The process locks the file, so that its
// successor has proof of its death. It is the protocol.TakeoverLock of a Numaflow container, whose pod outlives it.
//
// # Proof by the lock
//
// The lock is flock(2) on an open file. The kernel releases it when the last descriptor of that open file is closed. Nothing here closes it
// while the process may still draw: the descriptor is a plain number, which no finalizer closes.
//
//   - A killed process closes it at its end. All threads of a process share one table of descriptors. Each gives up its
//     part of the table inside the kernel, after it can no longer return to user code, and the last one closes the table.
//     So the lock is never free while a thread still runs, and a thread that hangs in the kernel keeps it.
//   - A child that inherits the descriptor keeps the lock beyond the death of its parent. That is safe, and exec closes it
//     in children (O_CLOEXEC). A process that replaces itself by exec has ended all other threads before that.
//   - A stopped process, or one that is written to a core file, keeps it.
//   - Packets that the process has sent may still arrive. The store refuses them because of the row, which stays; calls
//     that the called service still works on are those of any crash.
//
// # Origin of the content
//
// Only the holder of the lock writes, and only its own last state and those it has found. So all last states belong to earlier holders of the lock,
// which are dead or have left. A copy of the file is different: a last state could belong to a process that lives elsewhere. So the file names
// its location (device, inode, and the boot of the kernel that knows the lock), the pool and the ID. If one of them differs, nothing is
// inherited, as without the file. This applies after a restart of the machine, in a moved volume, and on a network file system that another
// machine has used last. A folder that does not enforce the lock between two open files of one process is not used.
//
// A cloned machine has a copy of file and lock. Its process knows from its last states which requests it has sent. The store frees nothing whose
// newest request came from another process; see the package documentation of consensus.
//
// # Writing
//
// The will is written before each request goes out, with one write and a checksum. A truncated write counts as nothing. Nothing is synced
// to disk: writes outlive their process in the kernel's cache, and if the kernel does not outlive the process, the file counts as nothing
// anyway.
package incarnation
