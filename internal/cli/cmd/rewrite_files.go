// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/conversion-operator/conversion-operator/internal/cli/rewrite"
)

// manifestFiles returns the files of paths, once each: files, the manifests in directories and all
// below them, and the files that match a pattern.
func manifestFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		var found []string
		switch {
		case err == nil && info.IsDir():
			found, err = manifestsBelow(path)
		case err == nil:
			found = []string{path}
		case errors.Is(err, fs.ErrNotExist):
			found, err = matching(path)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// matching returns the files that match a pattern.
func matching(pattern string) ([]string, error) {
	found, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: there is no such file, and none that matches it as a pattern", pattern)
	}
	return found, nil
}

// manifestsBelow returns the manifests in a directory and all below it, without those of Git.
func manifestsBelow(root string) ([]string, error) {
	followed, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	var files []string
	err = filepath.WalkDir(followed, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case !entry.Type().IsRegular():
		case slices.Contains([]string{".json", ".yaml", ".yml", ".tpl"}, filepath.Ext(path)) || rewrite.IsKustomization(path):
			below, err := filepath.Rel(followed, path)
			files = append(files, filepath.Join(root, below))
			return err
		}
		return nil
	})
	return files, err
}

// patches are what kustomizations apply the patches in files to, by absolute path.
type patches map[string]*rewrite.Target

// of returns the target of a patch, nil for a file that no kustomization uses as a patch.
func (p patches) of(file string) *rewrite.Target {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	return p[absolute]
}

// stays reports whether the patch in a file keeps its version.
func (p patches) stays(file string, rewriter *rewrite.Rewriter) bool {
	target := p.of(file)
	text, err := os.ReadFile(file) //nolint:gosec // a kustomization names it
	if target == nil || err != nil {
		return false
	}
	return !rewriter.Patch(text, target).Complete()
}

// patchFiles finds the patches of all kustomizations in the directories of files, and around them up
// to the root of a repository.
func patchFiles(files []string, rewriter *rewrite.Rewriter) (patches, error) {
	found, seen := patches{}, map[string]bool{}
	for _, file := range files {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		for folder := filepath.Dir(absolute); !seen[folder]; folder = filepath.Dir(folder) {
			seen[folder] = true
			for _, name := range konfig.RecognizedKustomizationFileNames() {
				text, err := os.ReadFile(filepath.Join(folder, name))
				if err != nil {
					continue // there is none
				}
				for path, target := range rewriter.Patches(text) {
					found[filepath.Join(folder, path)] = target
				}
			}
			if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
				break
			}
		}
	}
	return found, nil
}

// replaceFile replaces the text of a file as a whole. It fails if the file is no longer as it was
// before, and follows a symbolic link to the file.
func replaceFile(path string, before, after []byte) (err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name()) // it is not there if it was renamed
		}
	}()
	_, err = temporary.Write(after)
	err = errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		return errors.Join(errors.New("the file has changed meanwhile: run the command again"), err)
	}
	return os.Rename(temporary.Name(), path)
}
