// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// modulesPath is where a checkout keeps the module sets.
const modulesPath = "internal/localcluster/modules"

// moduleSet is a directory with go.mod and go.sum, and what identifies its
// content.
type moduleSet struct {
	dir string
	key string
}

// findModules returns the module sets' directory of the checkout that holds
// the directory start. Walking up also finds it from inside a nested module,
// where the go command would not.
func findModules(start string) (string, error) {
	for dir := start; ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, modulesPath)
		if _, err := os.Stat(filepath.Join(found, kubernetesSet, "go.mod")); err == nil {
			return found, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a conversion-operator checkout: run this where %s is in the directory or above it",
				start, modulesPath)
		}
	}
}

// moduleSets reads the pinned sets. Another version's Kubernetes set lives in
// the cache and may not be written yet, so its key comes from the version.
func (o Options) moduleSets() (map[string]moduleSet, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	modules, err := findModules(wd)
	if err != nil {
		return nil, err
	}
	sets := map[string]moduleSet{pauseSet: {key: contentKey(pauseSource)}}
	for _, name := range []string{kubernetesSet, etcdSet, nodeSet} {
		if sets[name], err = readModuleSet(filepath.Join(modules, name)); err != nil {
			return nil, err
		}
	}
	if o.KubernetesVersion != DefaultKubernetesVersion {
		sets[kubernetesSet] = moduleSet{dir: o.derivedSetDir(), key: contentKey([]byte(o.KubernetesVersion))}
	}
	return sets, nil
}

func readModuleSet(dir string) (moduleSet, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return moduleSet{}, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return moduleSet{}, err
	}
	return moduleSet{dir: dir, key: contentKey(mod, sum)}, nil
}

// contentKey is a hash of the contents and of the processor they are built
// for: home directories are sometimes shared between machines.
func contentKey(contents ...[]byte) string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%s/%s\n", runtime.GOOS, runtime.GOARCH)
	for _, c := range contents {
		_, _ = fmt.Fprintf(hash, "%d\n%s", len(c), c)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
