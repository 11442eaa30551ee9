// Package incarnation keeps what a process leaves behind for the next one under its ID in a file that the process
// locks, so that the next one has proof that it is dead. It is the consensus.Witness of a Numaflow container, whose
// pod outlives it.
//
// # Why the lock is proof
//
// The lock is flock(2) on an open file. The kernel lets go of it when the last descriptor of that open file is closed,
// and nothing here closes it while the process may still draw: the descriptor is a plain number, which no finalizer closes.
//
//   - A process that is killed closes it at its end. All threads of a process share one table of
//     descriptors; each gives up its part of the table inside the kernel, on a way from which no thread comes back to user code,
//     and the table is closed by the last. So the lock is never free while a thread still runs, and a thread that
//     hangs in the kernel keeps it.
//   - A child that inherits the descriptor keeps the lock beyond the death of its parent. That is safe, and
//     exec closes it in children (O_CLOEXEC). A process that replaces itself by exec has ended all other threads before that.
//   - A process that is stopped, or is written to a core file, keeps it.
//   - Packets that the process has sent may still arrive. The store refuses them by the row, which stays; calls that the
//     called service still works on are those of any crash.
//
// # Why what stands in the file is of the dead
//
// Only who holds the lock writes, and it writes nothing but its own will and those that it has found. So all wills are of processes that
// held the lock before, and are dead or have left. A copy of the file is another matter: a will could be of a process that lives elsewhere.
// The file names what it stands in (device, inode, and the boot of the kernel that knows the lock), the pool and the ID; where one of them is
// another, nothing is inherited, and everything is as without the file. So it is after the machine was restarted, in a volume that has
// moved, and on a network file system that another machine has used last. A folder that does not enforce the lock between two open
// files of one process is not used.
//
// A cloned machine has a copy of file and lock. Its process tells from its wills which requests it has sent, and the store frees nothing whose newest request
// is another's; see the package documentation of consensus.
//
// # What is written when
//
// The will is written before each request goes out, with one write and a checksum. What is cut off by death counts as nothing. Nothing is
// synced to disk: what a process has written outlives it in the kernel's cache, and where the kernel does not outlive the process the file
// counts as nothing anyway.
package incarnation
