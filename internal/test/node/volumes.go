// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accountPath is where pods find the token of their ServiceAccount.
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// Volumes are the volumes of a pod, each a folder that is kept as a kubelet keeps it: files are
// links into a folder which is replaced as a whole.
type Volumes struct {
	folders map[string]*folder
}

type folder struct {
	dir     string
	volume  corev1.Volume
	written map[string][]byte
	updates int
	tokens  map[string]token
}

// token is a token of a ServiceAccount, and when to replace it.
type token struct {
	text  string
	until time.Time
}

// NewVolumes returns the volumes of a pod, below a directory. Sync fills them.
func NewVolumes(dir string, pod *corev1.Pod) *Volumes {
	v := &Volumes{folders: map[string]*folder{}}
	for _, volume := range pod.Spec.Volumes {
		v.folders[volume.Name] = &folder{dir: filepath.Join(dir, volume.Name), volume: volume, tokens: map[string]token{}}
	}
	return v
}

// Sync writes the files of all volumes whose content has changed.
func (v *Volumes) Sync(ctx context.Context, api client.Client, pod *corev1.Pod) error {
	for _, f := range v.folders {
		if err := f.sync(ctx, api, pod); err != nil {
			return fmt.Errorf("mount volume %s: %w", f.volume.Name, err)
		}
	}
	return nil
}

// Path returns a text, such as an argument, with the folder of a volume instead of the path at which
// the container mounts it. The path may follow an equals sign.
func (v *Volumes) Path(container *corev1.Container, text string) string {
	flag, value := "", text
	if name, rest, found := strings.Cut(text, "="); found && !strings.Contains(name, "/") {
		flag, value = name+"=", rest
	}
	for _, mount := range container.VolumeMounts {
		if rest, within := strings.CutPrefix(value, mount.MountPath); within && (rest == "" || rest[0] == '/') {
			return flag + v.folders[mount.Name].dir + rest
		}
	}
	return text
}

// sync writes the files of the volume if they are others.
func (f *folder) sync(ctx context.Context, api client.Client, pod *corev1.Pod) error {
	if f.volume.EmptyDir != nil {
		return os.MkdirAll(f.dir, 0o755)
	}
	files, err := f.files(ctx, api, pod)
	if err != nil {
		return err
	}
	if f.updates > 0 && maps.EqualFunc(files, f.written, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	if f.updates == 0 {
		// Nodes that were killed left files of then, and maybe links to what is not there any more.
		if err := os.RemoveAll(f.dir); err != nil {
			return err
		}
	}
	if err := f.write(files); err != nil {
		return err
	}
	f.written = files
	return nil
}

// The names that pkg/volume/util/atomic_writer.go of k8s.io/kubernetes uses.
const dataLink, newDataLink = "..data", "..data_tmp"

func (f *folder) write(files map[string][]byte) error {
	f.updates++
	data := fmt.Sprintf("..%d", f.updates)
	if err := os.MkdirAll(filepath.Join(f.dir, data), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(f.dir, data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			return err
		}
	}
	if err := os.Symlink(data, filepath.Join(f.dir, newDataLink)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(f.dir, newDataLink), filepath.Join(f.dir, dataLink)); err != nil {
		return err
	}
	return errors.Join(f.link(files), os.RemoveAll(filepath.Join(f.dir, fmt.Sprintf("..%d", f.updates-1))))
}

// link makes and removes the links that programs read.
func (f *folder) link(files map[string][]byte) error {
	wanted := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		wanted[first] = true
		if err := os.Symlink(filepath.Join(dataLink, first), filepath.Join(f.dir, first)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for name := range f.written {
		if first, _, _ := strings.Cut(name, "/"); !wanted[first] {
			if err := os.Remove(filepath.Join(f.dir, first)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// files reads the content of the volume.
func (f *folder) files(ctx context.Context, api client.Client, pod *corev1.Pod) (map[string][]byte, error) {
	var sources []corev1.VolumeProjection
	switch v := f.volume; {
	case v.Secret != nil:
		reference := corev1.LocalObjectReference{Name: v.Secret.SecretName}
		sources = []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: reference, Items: v.Secret.Items, Optional: v.Secret.Optional}}}
	case v.ConfigMap != nil:
		sources = []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional}}}
	case v.Projected != nil:
		sources = v.Projected.Sources
	default:
		return nil, errors.New("nodes of processes have no volumes of this kind")
	}
	all := map[string][]byte{}
	for _, source := range sources {
		files, err := f.projected(ctx, api, pod, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

func (f *folder) projected(ctx context.Context, api client.Client, pod *corev1.Pod, source corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case source.Secret != nil:
		secret := &corev1.Secret{}
		err := api.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: source.Secret.Name}, secret)
		return picked(secret.Data, source.Secret.Items, source.Secret.Optional, err)
	case source.ConfigMap != nil:
		configMap := &corev1.ConfigMap{}
		err := api.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: source.ConfigMap.Name}, configMap)
		data := map[string][]byte{}
		maps.Copy(data, configMap.BinaryData)
		for key, text := range configMap.Data {
			data[key] = []byte(text)
		}
		return picked(data, source.ConfigMap.Items, source.ConfigMap.Optional, err)
	case source.DownwardAPI != nil: // each pod's namespace is in one
		files := map[string][]byte{}
		for _, item := range source.DownwardAPI.Items {
			text, err := fieldOf(pod, ptr.Deref(item.FieldRef, corev1.ObjectFieldSelector{}).FieldPath)
			if err != nil {
				return nil, err
			}
			files[item.Path] = []byte(text)
		}
		return files, nil
	case source.ServiceAccountToken != nil:
		text, err := f.token(ctx, api, pod, source.ServiceAccountToken)
		return map[string][]byte{source.ServiceAccountToken.Path: []byte(text)}, err
	}
	return nil, errors.New("nodes of processes have no projected volumes of this kind")
}

// token returns a token of the pod's ServiceAccount, and replaces it after four fifths of its life.
func (f *folder) token(ctx context.Context, api client.Client, pod *corev1.Pod, wanted *corev1.ServiceAccountTokenProjection) (string, error) {
	if known := f.tokens[wanted.Path]; time.Now().Before(known.until) {
		return known.text, nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: wanted.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if wanted.Audience != "" {
		request.Spec.Audiences = []string{wanted.Audience}
	}
	asked := time.Now()
	if err := api.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	life := request.Status.ExpirationTimestamp.Sub(asked)
	f.tokens[wanted.Path] = token{request.Status.Token, asked.Add(life * 4 / 5)}
	return request.Status.Token, nil
}

// picked returns the wanted keys under their paths, or all.
func picked(data map[string][]byte, items []corev1.KeyToPath, optional *bool, err error) (map[string][]byte, error) {
	if ptr.Deref(optional, false) {
		err = client.IgnoreNotFound(err)
	}
	if err != nil || len(items) == 0 {
		return data, err
	}
	files := map[string][]byte{}
	for _, item := range items {
		content, found := data[item.Key]
		if !found && !ptr.Deref(optional, false) {
			return nil, fmt.Errorf("there is no key %s", item.Key)
		}
		if found {
			files[item.Path] = content
		}
	}
	return files, nil
}

// fieldOf returns a field of a pod as its processes see it.
func fieldOf(pod *corev1.Pod, path string) (string, error) {
	fields := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName, "spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.podIP": pod.Status.PodIP, "status.podIPs": pod.Status.PodIP, "status.hostIP": pod.Status.HostIP,
	}
	text, found := fields[path]
	if !found {
		return "", fmt.Errorf("nodes of processes have no field %s", path)
	}
	return text, nil
}
