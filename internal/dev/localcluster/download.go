// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// MirrorVariable names the environment variable with the URL of a server that has the official
	// binaries of Kubernetes and etcd at the paths of their own servers. With none, all binaries are
	// built from source.
	MirrorVariable = "LOCALCLUSTER_MIRROR"

	noMirror = "none"
	// answerTimeout bounds how long a server may take to answer, before binaries are built instead.
	answerTimeout = 10 * time.Second
)

// download is an official binary.
type download struct {
	file string // URL of the binary, or of a gzipped tar archive that has it
	sums string // URL of the SHA-256 sum of the file, or of the sums of several files
}

// downloads returns where the official binaries of Kubernetes and etcd are, by name:
// https://kubernetes.io/releases/download and https://etcd.io/docs/latest/install. There are none for
// containerd and its plugins in a form that the local cluster needs.
func (o Options) downloads(etcd string) map[string]download {
	if mirror() == noMirror || runtime.GOOS != "linux" {
		return nil
	}
	found := map[string]download{}
	for _, t := range targets {
		if t.set == kubernetesSet {
			file := fmt.Sprintf("%s/release/%s/bin/linux/%s/%s", cmp.Or(mirror(), "https://dl.k8s.io"), o.KubernetesVersion, runtime.GOARCH, t.name)
			found[t.name] = download{file, file + ".sha256"}
		}
	}
	release := fmt.Sprintf("%s/etcd-io/etcd/releases/download/%s/", cmp.Or(mirror(), "https://github.com"), etcd)
	found["etcd"] = download{release + "etcd-" + etcd + "-linux-" + runtime.GOARCH + ".tar.gz", release + "SHA256SUMS"}
	return found
}

func mirror() string { return strings.TrimSuffix(os.Getenv(MirrorVariable), "/") }

// etcdVersion returns the version of etcd that a go.mod requires.
func etcdVersion(mod string) string {
	match := regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (v\S+)`).FindStringSubmatch(mod)
	if match == nil {
		return ""
	}
	return match[1]
}

// fetch downloads the official ones of these targets to the directory, and returns the others. A
// server that does not answer, or lacks a file, is no error: the progress says so, and the binaries are
// built. A file with another checksum is one, and is not written.
func (b builder) fetch(ctx context.Context, group []target, dir string) (rest []target, err error) {
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: answerTimeout, TLSHandshakeTimeout: answerTimeout}}
	defer client.CloseIdleConnections()
	for i, t := range group {
		from, official := b.downloads[t.name]
		if !official {
			rest = append(rest, t)
			continue
		}
		err := from.get(ctx, client, t.name, filepath.Join(dir, t.name), b.progress)
		if err == nil {
			continue
		}
		if unavailable := (*unavailableError)(nil); ctx.Err() != nil || !errors.As(err, &unavailable) {
			return nil, err
		}
		_, _ = fmt.Fprintf(b.progress, "official binaries are not available, and are built instead: %v\n", err)
		return slices.Concat(rest, group[i:]), nil
	}
	return rest, nil
}

// unavailableError says that a server does not have a file, or cannot be reached.
type unavailableError struct{ cause error }

func (e *unavailableError) Error() string { return e.cause.Error() }
func (e *unavailableError) Unwrap() error { return e.cause }

// get downloads one binary, and verifies it.
func (d download) get(ctx context.Context, client *http.Client, name, out string, progress io.Writer) error {
	sums, err := read(ctx, client, d.sums)
	if err != nil {
		return err
	}
	want, err := sumOf(string(sums), path.Base(d.file))
	if err != nil {
		return fmt.Errorf("%s: %w", d.sums, err)
	}
	start := time.Now()
	content, err := read(ctx, client, d.file)
	if err != nil {
		return err
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != want {
		return fmt.Errorf("%s has the SHA-256 sum %x, and not %s as %s says: it was changed or is incomplete; "+
			"with %s=%s it is built from source instead", d.file, got, want, d.sums, MirrorVariable, noMirror)
	}
	if strings.HasSuffix(d.file, ".tar.gz") {
		if content, err = extract(content, name); err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	if err = os.WriteFile(out, content, 0o755); errors.Is(err, unix.ENOSPC) { //nolint:gosec // it is a program
		return fmt.Errorf("%w: free some space, or set %s to a folder with 2 GiB", err, CacheVariable)
	}
	if err == nil {
		_, _ = fmt.Fprintf(progress, "downloaded %s, %d MB, in %.1f s\n", name, len(content)>>20, time.Since(start).Seconds())
	}
	return err
}

func read(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", MirrorVariable, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, errors.Join(ctx.Err(), &unavailableError{err})
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, &unavailableError{fmt.Errorf("%s: %s", url, response.Status)}
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, errors.Join(ctx.Err(), &unavailableError{fmt.Errorf("%s: %w", url, err)})
	}
	return content, nil
}

// sumOf returns the sum of a file: the only word of the text, or the word before the file's name.
func sumOf(sums, file string) (string, error) {
	words := strings.Fields(sums)
	if len(words) == 1 {
		return words[0], nil
	}
	if i := slices.Index(words, file); i > 0 {
		return words[i-1], nil
	}
	return "", fmt.Errorf("there is no sum of %s", file)
}

// extract returns a file of a gzipped tar archive.
func extract(archive []byte, name string) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the archive has no file %s", name)
		}
		if err != nil {
			return nil, err
		}
		if path.Base(header.Name) == name && header.Typeflag == tar.TypeReg {
			return io.ReadAll(files)
		}
	}
}
