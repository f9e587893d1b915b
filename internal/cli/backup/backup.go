// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

const (
	// maxObjectBytes bounds the memory for an object. etcd refuses much smaller ones.
	maxObjectBytes = 32 << 20
	// maxProblems bounds the memory for errors: a backup may have any number of objects.
	maxProblems = 20
	// preferredSuffix follows the version in the name of the folder of the preferred version.
	preferredSuffix = "-preferredversion"
)

// IsCompressed reports whether a text begins like a compressed archive.
func IsCompressed(start []byte) bool { return bytes.HasPrefix(start, []byte{0x1f, 0x8b}) }

// Conversion says which objects of a backup are converted, and how.
type Conversion struct {
	// Resource is the name of the CustomResourceDefinition, such as crontabs.example.com.
	Resource string
	// To is the version to convert to.
	To string
	// Convert converts an object to this version.
	Convert func(object []byte) ([]byte, error)
}

// Result counts what was in a backup.
type Result struct {
	// Converted are the objects that changed, and Current those that did not.
	Converted, Current int
	// Others are the files that are not objects of the resource, or are so in the folder of a
	// version that Velero uses only if the cluster serves it.
	Others int
	// Problems are the errors of objects that could not be converted, the first of them. They begin
	// with the name of the file. More counts the others.
	Problems []error
	More     int
}

// Run reads a backup, and writes it with converted objects: each in the same place, with the names
// of folders for its new version. Other files keep their content. The output is only of use if Run
// returns no error, and the result has no problems.
func (c *Conversion) Run(w io.Writer, r io.Reader) (*Result, error) {
	uncompressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("decompress the backup: %w", err)
	}
	compressed := gzip.NewWriter(w)
	in, out := tar.NewReader(uncompressed), tar.NewWriter(compressed)
	run := run{Conversion: c, out: out, folder: "resources/" + c.Resource + "/"}
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the backup: %w", err)
		}
		if err := run.entry(header, in); err != nil {
			return nil, fmt.Errorf("%q in the backup: %w", header.Name, err)
		}
	}
	// The checksum of the archive is behind its last entry.
	if _, err := io.Copy(io.Discard, uncompressed); err != nil {
		return nil, fmt.Errorf("read the end of the backup: %w", err)
	}
	if !run.isBackup {
		return nil, errors.New("this is not a backup of Velero: it has no folder resources")
	}
	return &run.result, errors.Join(out.Close(), compressed.Close())
}

// run is one run of a Conversion.
type run struct {
	*Conversion
	out *tar.Writer
	// folder has the objects of the resource.
	folder string
	// isBackup is true after an entry of the layout of Velero.
	isBackup bool
	// preferred is the folder of the preferred version of the resource, as it was in the backup.
	preferred string
	result    Result
}

// entry copies or converts an entry.
func (r *run) entry(header *tar.Header, content io.Reader) error {
	if err := check(header); err != nil {
		return err
	}
	path := strings.TrimPrefix(header.Name, "./")
	r.isBackup = r.isBackup || strings.HasPrefix(path, "resources/")
	version, preferred := r.version(path)
	if preferred {
		if r.preferred != "" && r.preferred != version {
			return fmt.Errorf("the backup has two preferred versions of %s, in %s and %s", r.Resource, r.preferred, version)
		}
		r.preferred = version
		header.Name = strings.Replace(header.Name, r.folder+version, r.folder+r.To+preferredSuffix, 1)
		header.Format = tar.FormatUnknown // the name may be longer than its format allows
	}
	isObject := strings.HasPrefix(path, r.folder) && (version == "" || preferred) && header.Typeflag == tar.TypeReg && strings.HasSuffix(path, ".json")
	if isObject {
		return r.object(path, version == "", header, content)
	}
	if header.Typeflag == tar.TypeReg {
		r.result.Others++
	}
	if err := r.out.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(r.out, content)
	return err
}

// check refuses entries that are in no backup of Velero, and that could make a program which extracts
// the archive write elsewhere.
func check(header *tar.Header) error {
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return errors.New("it is neither a file nor a folder: backups of Velero have no links")
	}
	name := strings.TrimSuffix(header.Name, "/")
	if name != "." && !fs.ValidPath(strings.TrimPrefix(name, "./")) {
		return errors.New("the name leads out of the archive, or is not in its simplest form")
	}
	return nil
}

// version returns the name of the folder of a version that the path is in, empty if there is none, and
// whether it is the folder of the preferred version.
func (r *run) version(path string) (folder string, preferred bool) {
	below, found := strings.CutPrefix(path, r.folder)
	folder, _, inside := strings.Cut(below, "/")
	if !found || !inside || folder == "namespaces" || folder == "cluster" {
		return "", false
	}
	return folder, strings.HasSuffix(folder, preferredSuffix)
}

// object converts an object, and counts it once: Velero writes the first of its files without a version.
func (r *run) object(path string, first bool, header *tar.Header, content io.Reader) error {
	if header.Size > maxObjectBytes {
		return fmt.Errorf("the object is larger than %d bytes", maxObjectBytes)
	}
	before, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	after, err := r.Convert(before)
	if err != nil {
		if len(r.result.Problems) < maxProblems {
			r.result.Problems = append(r.result.Problems, fmt.Errorf("%s: %w", path, err))
		} else {
			r.result.More++
		}
		return nil
	}
	if first && bytes.Equal(before, after) {
		r.result.Current++
	} else if first {
		r.result.Converted++
	}
	if header.Size = int64(len(after)); !bytes.Equal(before, after) {
		header.Format = tar.FormatUnknown
	}
	if err := r.out.WriteHeader(header); err != nil {
		return err
	}
	_, err = r.out.Write(after)
	return err
}
