// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// File keeps the records of all runs of one command in a local file. Other computers do not see it.
// A second file, with the suffix .lock, exists while a process uses it.
type File struct {
	path        string
	holder      string
	observation time.Duration

	mu sync.Mutex
	// records is the content: data by resource.
	records map[string]map[string]string
}

func (f *File) lock() string { return f.path + ".lock" }

// OpenFile takes the file, and creates it if it does not exist. It returns an error if another
// process uses it.
func OpenFile(ctx context.Context, path string) (*File, error) {
	f := &File{path: path, holder: thisProcess(), observation: observation, records: map[string]map[string]string{}}
	if err := f.take(ctx); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, errors.Join(fmt.Errorf("cannot read the record: %w", err), f.Close())
	default:
		err := json.Unmarshal(text, &f.records)
		if err == nil && f.records == nil {
			err = errors.New("it has null")
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("file %s is no record of this command: %w", path, err), f.Close())
		}
	}
	return f, nil
}

// take creates the lock. If there is one, it watches it for a sign of life first.
func (f *File) take(ctx context.Context) error {
	var seen fs.FileInfo
	end := time.Now().Add(f.observation)
	for {
		lock, err := os.OpenFile(f.lock(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = lock.WriteString(f.holder)
			return errors.Join(err, lock.Close())
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot use the record: %w", err)
		}
		found, err := os.Stat(f.lock())
		switch {
		case err != nil: // it was released
		case seen != nil && !found.ModTime().Equal(seen.ModTime()):
			return heldError{"file " + f.path, f.owner()}
		case time.Now().After(end):
			_ = os.Remove(f.lock())
			continue
		default:
			seen = found
		}
		if err := sleep(ctx, f.observation/20); err != nil {
			return err
		}
	}
}

func (f *File) owner() string {
	text, _ := os.ReadFile(f.lock())
	return string(text)
}

// Close releases the file.
func (f *File) Close() error {
	if f.owner() != f.holder {
		return nil
	}
	return os.Remove(f.lock())
}

// of returns the record of one resource.
func (f *File) of(resource string) record { return &fileRecord{f, resource} }

// write replaces the file in one step. It writes nothing if another process has taken it.
func (f *File) write() error {
	if owner := f.owner(); owner != f.holder {
		return takenError{"file " + f.path, owner}
	}
	text, err := json.MarshalIndent(f.records, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// fileRecord is the record of one resource in a file.
type fileRecord struct {
	file     *File
	resource string
}

func (r *fileRecord) String() string { return "file " + r.file.path }

// acquire does nothing: OpenFile has taken the file.
func (r *fileRecord) acquire(context.Context) error { return nil }

func (r *fileRecord) renew(context.Context) error {
	if owner := r.file.owner(); owner != r.file.holder {
		return takenError{r.String(), owner}
	}
	return os.Chtimes(r.file.lock(), time.Time{}, time.Now())
}

// Save implements record. The error has a status, so that the engine does not take a
// full disk for a lost connection, and try again for minutes.
func (r *fileRecord) Save(_ context.Context, data map[string]string) error {
	r.file.mu.Lock()
	defer r.file.mu.Unlock()
	if r.file.records[r.resource] == nil {
		r.file.records[r.resource] = map[string]string{}
	}
	maps.Copy(r.file.records[r.resource], data)
	if err := r.file.write(); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("%s: %v", r, err))
	}
	return nil
}

func (r *fileRecord) reset(context.Context) error {
	r.file.mu.Lock()
	defer r.file.mu.Unlock()
	delete(r.file.records, r.resource)
	return r.file.write()
}

// release does nothing: Close releases the file.
func (r *fileRecord) release(context.Context) error { return nil }
