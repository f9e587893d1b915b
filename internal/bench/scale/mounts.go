// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mount is a directory with the files of a volume, as a kubelet keeps it: files are links into a
// folder which is replaced as a whole.
type mount struct {
	dir     string
	volume  corev1.Volume
	written map[string][]byte
	updates int
}

// sync writes the files of the volume if they are others.
func (m *mount) sync(ctx context.Context, reader client.Reader) error {
	files, err := filesOf(ctx, reader, m.volume)
	if err != nil {
		return fmt.Errorf("mount volume %s: %w", m.volume.Name, err)
	}
	if m.updates > 0 && maps.EqualFunc(files, m.written, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	if err := m.write(files); err != nil {
		return err
	}
	m.written = files
	return nil
}

// The names that pkg/volume/util/atomic_writer.go of k8s.io/kubernetes uses.
const dataLink, newDataLink = "..data", "..data_tmp"

func (m *mount) write(files map[string][]byte) error {
	m.updates++
	folder := fmt.Sprintf("..%d", m.updates)
	if err := os.MkdirAll(filepath.Join(m.dir, folder), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.dir, folder, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(folder, filepath.Join(m.dir, newDataLink)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(m.dir, newDataLink), filepath.Join(m.dir, dataLink)); err != nil {
		return err
	}
	return errors.Join(m.link(files), os.RemoveAll(filepath.Join(m.dir, fmt.Sprintf("..%d", m.updates-1))))
}

// link makes and removes the links that programs read.
func (m *mount) link(files map[string][]byte) error {
	for name := range files {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(m.dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for name := range m.written {
		if _, remains := files[name]; !remains {
			if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesOf reads the content of a volume: a Secret, a ConfigMap, or optional ConfigMaps in one.
func filesOf(ctx context.Context, reader client.Reader, volume corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	add := func(name string) error {
		configMap := &corev1.ConfigMap{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: system, Name: name}, configMap)
		maps.Copy(files, configMap.BinaryData)
		return err
	}
	switch {
	case volume.Secret != nil:
		secret := &corev1.Secret{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: system, Name: volume.Secret.SecretName}, secret)
		return secret.Data, err
	case volume.ConfigMap != nil:
		return files, add(volume.ConfigMap.Name)
	case volume.Projected == nil:
		return nil, errors.New("it is of a kind that these nodes do not know")
	}
	for _, source := range volume.Projected.Sources {
		if err := client.IgnoreNotFound(add(source.ConfigMap.Name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// mounts are the volumes of a container by their paths in it.
type mounts map[string]*mount

func newMounts(dir string, spec *corev1.PodSpec) mounts {
	all := mounts{}
	for _, mounted := range spec.Containers[0].VolumeMounts {
		for _, volume := range spec.Volumes {
			if volume.Name == mounted.Name {
				all[mounted.MountPath] = &mount{dir: filepath.Join(dir, volume.Name), volume: volume}
			}
		}
	}
	return all
}

func (m mounts) sync(ctx context.Context, reader client.Reader) error {
	for _, each := range m {
		if err := each.sync(ctx, reader); err != nil {
			return err
		}
	}
	return nil
}

// args are the arguments of a container, with our directories in them.
func (m mounts) args(container []string) []string {
	var args []string
	for _, arg := range container {
		for path, each := range m {
			arg = strings.Replace(arg, "="+path, "="+each.dir, 1)
		}
		args = append(args, arg)
	}
	return args
}
