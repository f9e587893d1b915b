//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/published"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// stage runs scenes that need an API server and a repository of manifests, but neither pods nor the
// operator.
type stage struct {
	*testing.T
	player *Player
}

// TestScenes audits a cluster, tries the rules of the samples, operates a policy, audits again
// after adding problems, and migrates a definition without the operator.
func TestScenes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	well := []published.Project{published.CertManager, published.GatewayAPI}
	s.define(s.published(well...)...)
	s.write("new-crds.yaml", s.published(published.CertManager)...)
	s.play("all is well")

	s.run("kubectl apply -f crd.yaml && "+Established("-f crd.yaml"),
		"kubectl create namespace team-a",
		"kubectl apply -f policy.yaml -f objects.yaml && kubectl apply -n team-a -f objects.yaml")
	s.play("rules")
	s.play("a policy")
	s.run("kubectl apply --server-side --force-conflicts --field-manager=flux -f policy-suspended.yaml")
	s.play("a conflict")
	s.run("kubectl delete -f policy.yaml -f crd.yaml")

	s.run("kubectl apply -f backups-crd.yaml && "+Established("-f backups-crd.yaml"), "kubectl apply -f backups.yaml",
		"kubectl create configmap nightly-settings && kubectl patch configmap nightly-settings --type=merge "+
			`-p '{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1beta1","kind":"Backup","name":"nightly","uid":"'$(kubectl get backups.v1.example.com nightly -o jsonpath={.metadata.uid})'"}]}}'`)
	s.play("dependents")
	s.run("kubectl delete -f backups.yaml -f backups-crd.yaml",
		"sed 's/storage: true/storage: @/; s/storage: false/storage: true/; s/@/false/' 3-crd-both.yaml > stored-at-v1.yaml",
		"kubectl apply -f stored-at-v1.yaml && "+Established("-f stored-at-v1.yaml"), "touch audit.log")
	s.play("no dependents")
	s.run("kubectl delete -f stored-at-v1.yaml")

	for _, crd := range s.published(published.Karpenter, published.Tekton) {
		if slices.Contains([]string{"nodepools.karpenter.sh", "tasks.tekton.dev"}, crd.Name) {
			s.define(crd)
		}
	}
	s.run("kubectl apply -f widgets.yaml && "+Established("-f widgets.yaml"),
		`kubectl patch crd widgets.shop.example.com --subresource=status --type=merge -p '{"status":{"storedVersions":["v1beta1","v1"]}}'`,
		"kubectl apply -f migration.json",
		"kubectl patch storageversionmigrations widgets --subresource=status --type=merge --patch-file=migration-status.json")
	s.play("problems found")

	s.run("kubectl patch crd widgets.shop.example.com --type=json -p '" + stores("v1beta1") + "'")
	for _, name := range []string{"a", "b", "c"} {
		s.run("kubectl create -f - <<'END'\n---\n{apiVersion: shop.example.com/v1, kind: Widget, metadata: {name: " + name + ", namespace: default}}\nEND")
	}
	s.run("kubectl patch crd widgets.shop.example.com --type=json -p '" + stores("v1") + "'")
	s.play("without the operator")
}

// newStage returns a stage with the kind ConversionPolicy, and the files that the pages name.
func newStage(t *testing.T) *stage {
	t.Helper()
	cluster, folder := start(t), t.TempDir()
	s := &stage{t, cluster.player(t, folder, &strings.Builder{})}
	s.player.Environment = append(s.player.Environment, "PATH="+strings.Join([]string{binaries(t), cluster.kubectl, os.Getenv("PATH")}, ":"),
		"GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.com", "GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.com")
	config, err := filepath.Abs(filepath.Join(root, "config"))
	expect.NoError(t, err)
	expect.NoError(t, os.Symlink(config, filepath.Join(folder, "config")))
	migration, err := testenv.StorageVersionMigration(testenv.ServedMigrations(t, cluster.discovery), "widgets",
		schema.GroupVersionResource{Group: "failed.example.com", Version: "v1", Resource: "widgets"}).MarshalJSON()
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "migration.json"), migration, 0o600))
	failed, err := json.Marshal(map[string]any{"status": testenv.MigrationStatus("Failed")})
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "migration-status.json"), failed, 0o600))
	for name, text := range files {
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "backup.tar.gz"), savedBackup(t), 0o600))
	s.run("cp config/samples/crontab-hostport/*.yaml .",
		"cp 2-policy.yaml policy.yaml", "cp 3-crd-both.yaml crd.yaml", "cp crd.yaml new-crd.yaml",
		"sed 's/mode: Automatic/&\\n    suspend: false/' policy.yaml > policy-suspended.yaml",
		"mkdir old new manifests && cp policy.yaml crd.yaml old && cp policy.yaml crd.yaml new && sed '/note:/d; /No colon/,$d' objects.yaml > manifests/objects.yaml",
		"conversion-operator report --policy policy.yaml --crd crd.yaml -f objects.yaml --timeless > report.html",
		"git init --quiet --initial-branch=main && git add policy.yaml report.html && git commit --quiet --message=first",
		`for name in staging production; do kubectl config set-context $name --cluster="$(kubectl config view -o 'jsonpath={.contexts[0].context.cluster}')" --user="$(kubectl config view -o 'jsonpath={.contexts[0].context.user}')"; done`,
		"kubectl apply --server-side -f config/crd/bases && "+Established("-f config/crd/bases"))
	return s
}

// savedBackup returns a backup of Velero, with the policy and the definition of the sample, an object,
// and one of another kind.
func savedBackup(t *testing.T) []byte {
	t.Helper()
	sample := func(file string) string {
		text, err := yaml.YAMLToJSON([]byte(read(t, filepath.Join(root, "config/samples/crontab-hostport", file))))
		expect.NoError(t, err)
		return string(text)
	}
	const object = `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"nightly","namespace":"default"},"hostPort":"batch.example.com:8080","replicas":2}`
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	for _, file := range [][2]string{
		{"metadata/version", "1.1.0\n"},
		{"resources/configmaps/namespaces/default/settings.json", "{}"},
		{"resources/customresourcedefinitions.apiextensions.k8s.io/cluster/crontabs.example.com.json", sample("3-crd-both.yaml")},
		{"resources/conversionpolicies.conversion-operator.io/cluster/crontabs.example.com.json", sample("2-policy.yaml")},
		{"resources/crontabs.example.com/namespaces/default/nightly.json", object},
		{"resources/crontabs.example.com/v1beta1-preferredversion/namespaces/default/nightly.json", object},
	} {
		expect.NoError(t, archive.WriteHeader(&tar.Header{Name: file[0], Size: int64(len(file[1])), Typeflag: tar.TypeReg, Mode: 0o755}))
		_, err := archive.Write([]byte(file[1]))
		expect.NoError(t, err)
	}
	expect.NoError(t, errors.Join(archive.Close(), compressed.Close()))
	return text.Bytes()
}

// files have what the pages on audits and dependents show, besides published CRDs.
var files = map[string]string{
	"backups-crd.yaml": backupsCRD, "backups.yaml": backups,
	"widgets.yaml": widgets("shop.example.com", "false") + "---\n" + widgets("failed.example.com", "true"),
}

// backupsCRD is a kind with two versions.
const backupsCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup}
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// backups name the old version.
const backups = `apiVersion: example.com/v1beta1
kind: Backup
metadata: {name: nightly, namespace: default}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: backups}
webhooks:
- name: backups.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules:
  - {apiGroups: [example.com], apiVersions: [v1beta1], resources: [backups], operations: [CREATE, UPDATE]}
`

// widgets returns a CRD with two versions. served applies to the old one.
func widgets(group, served string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: ` + served + `, storage: false, schema: {openAPIV3Schema: {type: object}}}
`
}

// stores returns a JSON patch that makes a version of widgets the storage version, and serves both.
func stores(version string) string {
	return fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/storage","value":%t},{"op":"replace","path":"/spec/versions/1/storage","value":%t},`+
		`{"op":"replace","path":"/spec/versions/1/served","value":true}]`, version == "v1", version == "v1beta1")
}

func (s *stage) play(scene string) {
	s.Helper()
	pages, err := Scene(root, scene)
	expect.NoError(s.T, err)
	for _, page := range pages {
		expect.NoError(s.T, s.player.Play(s.Context(), page))
	}
}

func (s *stage) run(commands ...string) {
	s.Helper()
	for _, command := range commands {
		expect.NoError(s.T, s.player.do(s.Context(), Command{Text: command + "\n"}))
	}
}

func (s *stage) published(projects ...published.Project) []*apiextensionsv1.CustomResourceDefinition {
	s.Helper()
	definitions, err := published.Read(s.Context(), projects...)
	expect.NoError(s.T, err)
	return definitions
}

func (s *stage) define(definitions ...*apiextensionsv1.CustomResourceDefinition) {
	s.Helper()
	s.write("definitions.yaml", definitions...)
	s.run("kubectl apply --server-side -f definitions.yaml && " + Established("-f definitions.yaml"))
}

// write saves CRDs in a file.
func (s *stage) write(name string, definitions ...*apiextensionsv1.CustomResourceDefinition) {
	s.Helper()
	var documents []string
	for _, definition := range definitions {
		text, err := yaml.Marshal(definition)
		expect.NoError(s.T, err)
		documents = append(documents, string(text))
	}
	expect.NoError(s.T, os.WriteFile(filepath.Join(s.player.Folder, name), []byte(strings.Join(documents, "---\n")), 0o600))
}
