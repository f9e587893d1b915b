// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// recordIn returns the record of one process in a cluster.
func recordIn(client *fake.Clientset, holder string, observation time.Duration) *configMap {
	return &configMap{core: client.CoreV1(), namespace: "default", name: "record", holder: holder, observation: observation}
}

func (c *configMap) data(t *testing.T) map[string]string {
	t.Helper()
	found, err := c.client().Get(t.Context(), c.name, metav1.GetOptions{})
	expect.NoError(t, err)
	return found.Data
}

// fenced makes the fake refuse patches with an old resourceVersion, as API servers do.
func fenced(t *testing.T) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset()
	version := 0
	client.PrependReactor("*", "configmaps", func(action ktesting.Action) (bool, runtime.Object, error) {
		if action, is := action.(ktesting.PatchActionImpl); is {
			stored, err := client.Tracker().Get(action.GetResource(), action.GetNamespace(), action.GetName())
			if err != nil {
				return true, nil, err
			}
			is := stored.(*corev1.ConfigMap).ResourceVersion
			if !strings.Contains(string(action.GetPatch()), `"resourceVersion":"`+is+`"`) {
				return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), action.GetName(), errors.New("it was written"))
			}
			version++
			next := stored.(*corev1.ConfigMap).DeepCopy()
			next.ResourceVersion = strings.Repeat("i", version)
			expect.NoError(t, client.Tracker().Update(action.GetResource(), next, action.GetNamespace()))
			action.Patch = []byte(strings.Replace(string(action.Patch), `"resourceVersion":"`+is+`"`, `"resourceVersion":"`+next.ResourceVersion+`"`, 1))
			return ktesting.ObjectReaction(client.Tracker())(action)
		}
		return false, nil, nil
	})
	return client
}

func TestConfigMap(t *testing.T) {
	client := fenced(t)
	first := recordIn(client, "first", time.Minute)
	expect.NoError(t, first.acquire(t.Context()))
	expect.NoError(t, first.Save(t.Context(), map[string]string{"a": "1"}))
	expect.NoError(t, first.renew(t.Context()))

	// A second process sees no sign of life, and takes the record over.
	second := recordIn(client, "second", time.Millisecond)
	expect.NoError(t, second.acquire(t.Context()))
	expect.Equal(t, "data", "1", second.data(t)["a"])
	for name, write := range map[string]func() error{
		"save":  func() error { return first.Save(t.Context(), map[string]string{"a": "2"}) },
		"renew": func() error { return first.renew(t.Context()) },
	} {
		if err := write(); !errors.Is(err, takenError{first.String(), "second"}) {
			t.Errorf("%s of the first process: %v", name, err)
		}
	}

	expect.NoError(t, second.release(t.Context()))
	third := recordIn(client, "third", time.Hour)
	expect.NoError(t, third.acquire(t.Context()))
	expect.NoError(t, third.reset(t.Context()))
	expect.Equal(t, "data", 0, len(third.data(t)))
}

// The answer to a write may be lost: the next one finds that it was its own.
func TestConfigMapAfterALostAnswer(t *testing.T) {
	client := fenced(t)
	r := recordIn(client, "first", time.Minute)
	expect.NoError(t, r.acquire(t.Context()))
	before := r.version
	expect.NoError(t, r.Save(t.Context(), map[string]string{contract.RecordKey: "1"}))
	r.version, r.saved = before, ""
	expect.NoError(t, r.renew(t.Context()))
	expect.NoError(t, r.Save(t.Context(), map[string]string{contract.RecordKey: "2"}))
}

// etcd may be restored from a snapshot that was made during the run: objects that were rewritten since
// then are in their old version again, and the record of the snapshot has to be continued.
func TestConfigMapAfterARestore(t *testing.T) {
	for name, write := range map[string]func(*configMap) error{
		"save":  func(r *configMap) error { return r.Save(t.Context(), map[string]string{contract.RecordKey: "3"}) },
		"renew": func(r *configMap) error { return r.renew(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			client := fenced(t)
			r := recordIn(client, "first", time.Minute)
			expect.NoError(t, r.acquire(t.Context()))
			expect.NoError(t, r.Save(t.Context(), map[string]string{contract.RecordKey: "1"}))
			snapshot, err := r.client().Get(t.Context(), r.name, metav1.GetOptions{})
			expect.NoError(t, err)
			expect.NoError(t, r.Save(t.Context(), map[string]string{contract.RecordKey: "2"}))
			_, err = r.client().Update(t.Context(), snapshot, metav1.UpdateOptions{})
			expect.NoError(t, err)

			if err := write(r); !errors.As(err, new(restoredError)) {
				t.Errorf("error is %v", err)
			}
			expect.Equal(t, "record", "1", r.data(t)[contract.RecordKey])
		})
	}
}

func TestForeignConfigMap(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "record"}})
	err := recordIn(client, "first", time.Minute).acquire(t.Context())
	expect.Contains(t, "error", fmt.Sprint(err), "is no record of this command")
}

func TestConfigMapName(t *testing.T) {
	expect.Equal(t, "name", "kubectl-conversion-migrate.crontabs.example.com", ConfigMapName("crontabs.example.com"))
	if got := ConfigMapName(strings.Repeat("a", 250)); len(got) > 253 {
		t.Errorf("the name has %d characters", len(got))
	}
}
