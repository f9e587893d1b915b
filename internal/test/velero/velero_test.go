// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package velero

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/backup"
	veleroclient "github.com/vmware-tanzu/velero/pkg/client"
	"github.com/vmware-tanzu/velero/pkg/discovery"
	"github.com/vmware-tanzu/velero/pkg/features"
	"github.com/vmware-tanzu/velero/pkg/podvolume"
	"github.com/vmware-tanzu/velero/pkg/restore"
	"github.com/vmware-tanzu/velero/pkg/types"
	"github.com/vmware-tanzu/velero/pkg/util/kube"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const (
	root    = "../../.."
	samples = root + "/config/samples/crontab-hostport/"
)

// TestConvertedBackup restores a backup of objects at v1beta1 into a cluster that has only v1, also with
// the feature of Velero that chooses between versions.
func TestConvertedBackup(t *testing.T) {
	program := filepath.Join(t.TempDir(), "conversion-operator")
	command(t, nil, "go", "build", "-C", root, "-o", program, ".")
	archive := filepath.Join(t.TempDir(), "archive.yaml")
	write(t, archive, command(t, nil, program, "archive", "--policy", samples+"2-policy.yaml", "--crd", samples+"3-crd-both.yaml"))

	old := start(t, definition(t, "1-crd-v1beta1.yaml"))
	createSamples(t, old)
	for name, feature := range map[string]bool{"by default": false, "with versions of groups": true} {
		t.Run(name, func(t *testing.T) {
			enable(t, feature)
			saved := backUp(t, old)
			recent := start(t, onlyV1(t))
			if errs := restoreInto(t, recent, saved); len(errs) == 0 {
				t.Error("objects at v1beta1 were restored without a conversion")
			}
			if found := cronTabs(t, recent, "v1"); len(found) > 0 {
				t.Fatalf("without a conversion, there are %v", found)
			}
			converted := command(t, saved, program, "convert", "--policy", archive, "--to=v1")
			if errs := restoreInto(t, recent, converted); len(errs) > 0 {
				t.Errorf("errors of the restore: %v", errs)
			}
			want := []map[string]any{
				{"name": "local", "host": "localhost", "port": "1234", "replicas": int64(2)},
				{"name": "with-note", "host": "batch.example.com", "port": "8080", "replicas": int64(1)},
				{"name": "without-port", "replicas": int64(1)},
			}
			if got := cronTabs(t, recent, "v1"); !reflect.DeepEqual(got, want) {
				t.Errorf("restored objects are\n%v, want\n%v", got, want)
			}
			// What v1 cannot express comes back at v1beta1.
			list, err := listOf(t, recent, "v1").MarshalJSON()
			noError(t, err)
			back := &unstructured.UnstructuredList{}
			noError(t, back.UnmarshalJSON(command(t, list, program, "convert", "--policy", archive, "--to=v1beta1")))
			if got, want := contents(back), cronTabs(t, old, "v1beta1"); !reflect.DeepEqual(got, want) {
				t.Errorf("at v1beta1, the restored objects are\n%v, want\n%v", got, want)
			}
		})
	}
}

// enable sets the feature with which Velero saves objects at all versions that are served.
func enable(t *testing.T, feature bool) {
	t.Helper()
	features.Enable()
	if feature {
		features.Enable(velerov1.APIGroupVersionsFeatureFlag)
		t.Cleanup(func() { features.Disable(velerov1.APIGroupVersionsFeatureFlag) })
	}
}

// cluster is an API server.
type cluster struct {
	config     *rest.Config
	kubeconfig []byte
	client     client.Client
}

func start(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *cluster {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, ControlPlaneStopTimeout: 2 * time.Minute}
	config, err := environment.Start()
	noError(t, err)
	t.Cleanup(func() { _ = environment.Stop() })
	scheme := runtime.NewScheme()
	noError(t, corev1.AddToScheme(scheme))
	noError(t, velerov1.AddToScheme(scheme))
	api, err := client.New(config, client.Options{Scheme: scheme})
	noError(t, err)
	return &cluster{config, environment.KubeConfig, api}
}

// definition returns a definition of the sample.
func definition(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(samples + file)
	noError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	noError(t, yaml.UnmarshalStrict(text, crd))
	return crd
}

// onlyV1 returns the definition without the old version.
func onlyV1(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := definition(t, "3-crd-both.yaml")
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != "v1" })
	crd.Spec.Versions[0].Storage = true
	return crd
}

func createSamples(t *testing.T, c *cluster) {
	t.Helper()
	text, err := os.ReadFile(samples + "objects.yaml")
	noError(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		noError(t, yaml.Unmarshal([]byte(document), &object.Object))
		object.SetNamespace("default")
		noError(t, c.client.Create(t.Context(), object))
	}
}

func listOf(t *testing.T, c *cluster, version string) *unstructured.UnstructuredList {
	t.Helper()
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/" + version, "kind": "CronTabList"}}
	noError(t, c.client.List(t.Context(), list))
	return list
}

func cronTabs(t *testing.T, c *cluster, version string) []map[string]any {
	t.Helper()
	return contents(listOf(t, c, version))
}

// contents returns the fields of objects, with their names and without other metadata.
func contents(list *unstructured.UnstructuredList) (found []map[string]any) {
	for _, item := range list.Items {
		content := map[string]any{"name": item.GetName()}
		for name, value := range item.Object {
			if name != "apiVersion" && name != "kind" && name != "metadata" {
				content[name] = value
			}
		}
		found = append(found, content)
	}
	return found
}

// velero returns what Velero's code needs of a cluster.
func velero(t *testing.T, c *cluster) (logrus.FieldLogger, discovery.Helper, veleroclient.DynamicFactory, kubernetes.Interface) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(t.Output())
	log.SetLevel(logrus.ErrorLevel)
	builtIn, err := kubernetes.NewForConfig(c.config)
	noError(t, err)
	helper, err := discovery.NewHelper(builtIn.DiscoveryClient, log)
	noError(t, err)
	resources, err := dynamic.NewForConfig(c.config)
	noError(t, err)
	return log, helper, veleroclient.NewDynamicFactory(resources), builtIn
}

func veleroBackup() *velerov1.Backup {
	return &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: velerov1.DefaultNamespace, Name: "nightly"},
		Spec:       velerov1.BackupSpec{IncludedNamespaces: []string{"default"}, IncludedResources: []string{"crontabs.example.com", "namespaces"}},
		Status:     velerov1.BackupStatus{FormatVersion: backup.BackupFormatVersion},
	}
}

func backUp(t *testing.T, c *cluster) []byte {
	t.Helper()
	log, helper, resources, _ := velero(t, c)
	backupper, err := backup.NewKubernetesBackupper(c.client, helper, resources, nil, noVolumes{}, time.Minute, false, 100, "", nil, nil)
	noError(t, err)
	pool := backup.StartItemBlockWorkerPool(t.Context(), 1, log)
	defer pool.Stop()
	var saved bytes.Buffer
	request := &backup.Request{
		Backup: veleroBackup(), SkippedPVTracker: backup.NewSkipPVTracker(), BackedUpItems: backup.NewBackedUpItemsMap(), WorkerPool: pool,
	}
	noError(t, backupper.Backup(log, request, &saved, nil, nil, nil))
	return saved.Bytes()
}

// noVolumes backs up no volumes of pods.
type noVolumes struct{ podvolume.Backupper }

func (n noVolumes) NewBackupper(context.Context, logrus.FieldLogger, *velerov1.Backup, string) (podvolume.Backupper, error) {
	return n, nil
}

func (noVolumes) WaitAllPodVolumesProcessed(logrus.FieldLogger) []*velerov1.PodVolumeBackup {
	return nil
}

// restoreInto restores a backup, and returns the errors.
func restoreInto(t *testing.T, c *cluster, saved []byte) []string {
	t.Helper()
	// Velero reads its own settings of versions with another client.
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, c.kubeconfig)
	t.Setenv("KUBECONFIG", file)
	log, helper, resources, builtIn := velero(t, c)
	restorer, err := restore.NewKubernetesRestorer(helper, resources, types.Priorities{}, builtIn.CoreV1().Namespaces(), nil,
		time.Minute, time.Minute, time.Minute, log, nil, builtIn.CoreV1().RESTClient(), nil, c.client, nil)
	noError(t, err)
	request := &restore.Request{
		Log: log, Backup: veleroBackup(), BackupReader: bytes.NewReader(saved), DisableInformerCache: true,
		ResourceDeletionStatusTracker: kube.NewResourceDeletionStatusTracker(),
		Restore: &velerov1.Restore{
			ObjectMeta: metav1.ObjectMeta{Namespace: velerov1.DefaultNamespace, Name: "nightly"},
			Spec:       velerov1.RestoreSpec{BackupName: "nightly", IncludedNamespaces: []string{"*"}, IncludedResources: []string{"*"}},
		},
	}
	request.RestoredItems = empty(request.RestoredItems)
	warnings, errs := restorer.Restore(request, nil, nil)
	for _, warning := range slices.Concat(warnings.Velero, warnings.Cluster, warnings.Namespaces["default"]) {
		t.Log("warning of the restore: " + warning)
	}
	return slices.Concat(errs.Velero, errs.Cluster, errs.Namespaces["default"])
}

// empty returns an empty map of a type that has no name here.
func empty[K comparable, V any](map[K]V) map[K]V { return map[K]V{} }

// command runs a program, and returns what it wrote.
func command(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	program := exec.CommandContext(t.Context(), name, args...)
	program.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	program.Stderr = &stderr
	out, err := program.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.String())
	}
	return out
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	noError(t, os.WriteFile(file, text, 0o600))
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
