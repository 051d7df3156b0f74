"""Operations: backups and their way back, a look at the machine, settings out of files.

Nothing here is imported by `import reverie`. Reading order: `manifest` (what a backup is), `places`
(where it lies), `copying`, `restoring`; `doctor` with `doctor_folder`; `settings`.
"""
