// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var testResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}

var testPin = Pin{Name: "crontabs.example.com", UID: "crd-1", Generation: 3}

// stored is one object as etcd holds it.
type stored struct {
	uid      types.UID
	revision int64
	version  string
}

// fakeAPI keeps objects the way the API server and etcd do: one revision for
// all, lists that page over a snapshot, and patches that write only if the
// bytes differ. The hooks make it misbehave; they run before the request, may
// change the objects, and their error is the answer.
type fakeAPI struct {
	mu        sync.Mutex
	objects   map[string]stored
	revision  int64
	snapshots map[string][]metav1.PartialObjectMetadata

	onPatch    func(key string) error
	afterPatch func(key string) error
	onList     func(options metav1.ListOptions) error
	lists      []metav1.ListOptions
	patched    []string

	definition metav1.PartialObjectMetadata
	onLook     func() error
	looks      int
}

// newFakeAPI holds n objects at v1beta1: ns/a000, ns/a001, …
func newFakeAPI(n int) *fakeAPI {
	api := &fakeAPI{objects: map[string]stored{}, snapshots: map[string][]metav1.PartialObjectMetadata{}, revision: 100}
	api.definition.UID, api.definition.Generation = testPin.UID, testPin.Generation
	for i := range n {
		api.write(objectKey(i), "v1beta1")
	}
	return api
}

func objectKey(i int) string { return fmt.Sprintf("ns/a%03d", i) }

func (f *fakeAPI) write(key, version string) {
	f.revision++
	uid := f.objects[key].uid
	if uid == "" {
		uid = types.UID(fmt.Sprintf("uid-%d", f.revision))
	}
	f.objects[key] = stored{uid: uid, revision: f.revision, version: version}
}

func (f *fakeAPI) remove(key string) {
	f.revision++
	delete(f.objects, key)
}

func (f *fakeAPI) recreate(key, version string) {
	f.remove(key)
	f.write(key, version)
}

// expire forgets all snapshots, as a compaction of etcd does.
func (f *fakeAPI) expire() { clear(f.snapshots) }

func (f *fakeAPI) metadata(key string) metav1.PartialObjectMetadata {
	namespace, name, _ := strings.Cut(key, "/")
	o := f.objects[key]
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: o.uid, ResourceVersion: strconv.FormatInt(o.revision, 10),
	}}
}

func (f *fakeAPI) all() []metav1.PartialObjectMetadata {
	var items []metav1.PartialObjectMetadata
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		items = append(items, f.metadata(key))
	}
	return items
}

// List answers with the snapshot that the token names. The token "latest" goes
// on in the newest state.
func (f *fakeAPI) List(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.lists = append(f.lists, options)
	if f.onList != nil {
		if err := f.onList(options); err != nil {
			return nil, err
		}
	}
	if name, ok := strings.CutPrefix(options.FieldSelector, "metadata.name="); ok {
		return f.one(namespace + "/" + name), nil
	}
	return f.page(options)
}

func (f *fakeAPI) one(key string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	if _, ok := f.objects[key]; ok {
		list.Items = append(list.Items, f.metadata(key))
	}
	return list
}

func (f *fakeAPI) page(options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	snapshot, last, _ := strings.Cut(options.Continue, "|")
	var items []metav1.PartialObjectMetadata
	switch snapshot {
	case "":
		snapshot = strconv.FormatInt(f.revision, 10)
		items = f.all()
		f.snapshots[snapshot] = items
	case "latest":
		items = f.all()
	default:
		var ok bool
		if items, ok = f.snapshots[snapshot]; !ok {
			return nil, expiredError("latest|" + last)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(items), func(o metav1.PartialObjectMetadata) bool { return keyOf(&o) <= last })
	list := &metav1.PartialObjectMetadataList{Items: rest}
	list.ResourceVersion = strconv.FormatInt(f.revision, 10)
	if limit := int(options.Limit); len(rest) > limit {
		list.Items = rest[:limit]
		list.RemainingItemCount = new(int64(len(rest) - limit))
		list.Continue = snapshot + "|" + keyOf(&rest[limit-1])
	}
	return list, nil
}

// Patch checks the resourceVersion and stores the object at v1.
func (f *fakeAPI) Patch(ctx context.Context, namespace, name string, patch []byte) (*metav1.PartialObjectMetadata, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	key := namespace + "/" + name
	f.patched = append(f.patched, key)
	if f.onPatch != nil {
		if err := f.onPatch(key); err != nil {
			return nil, err
		}
	}
	var body metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch, &body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, ok := f.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(testResource.GroupResource(), name)
	}
	if body.ResourceVersion != strconv.FormatInt(object.revision, 10) {
		return nil, conflict(name)
	}
	if object.version != "v1" {
		f.write(key, "v1")
	}
	if f.afterPatch != nil {
		if err := f.afterPatch(key); err != nil {
			return nil, err
		}
	}
	answer := f.metadata(key)
	return &answer, nil
}

// DefinitionMetadata shows what the hooks made of the definition.
func (f *fakeAPI) DefinitionMetadata(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.looks++
	if f.onLook != nil {
		if err := f.onLook(); err != nil {
			return nil, err
		}
	}
	return f.definition.DeepCopy(), nil
}

// ServedResource shows a steady state.
func (f *fakeAPI) ServedResource(context.Context) (*metav1.APIResource, error) {
	return shownWith(storageVersionHash("example.com", "v1", "CronTab")), nil
}

func shownWith(hash string) *metav1.APIResource {
	return &metav1.APIResource{Name: "crontabs", Kind: "CronTab", StorageVersionHash: hash}
}

// oldKeys are the objects that are not stored at v1.
func (f *fakeAPI) oldKeys() []string {
	var keys []string
	for key, o := range f.objects {
		if o.version != "v1" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// fakeStore keeps every record that was saved.
type fakeStore struct {
	saved  [][]byte
	onSave func() error
	onLoad func() error
}

func (s *fakeStore) Load(ctx context.Context) ([]byte, error) {
	if s.onLoad != nil {
		if err := s.onLoad(); err != nil {
			return nil, err
		}
	}
	if len(s.saved) == 0 {
		return nil, ctx.Err()
	}
	return s.saved[len(s.saved)-1], ctx.Err()
}

func (s *fakeStore) Save(ctx context.Context, record []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.onSave != nil {
		if err := s.onSave(); err != nil {
			return err
		}
	}
	s.saved = append(s.saved, record)
	return nil
}

// records parses all that was saved, so every test proves that it is readable.
func (s *fakeStore) records(t *testing.T) []Record {
	t.Helper()
	var records []Record
	for _, data := range s.saved {
		r, err := ParseRecord(data)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// fakeClock moves by what is slept, and by step whenever someone looks.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	step  time.Duration
	slept []time.Duration
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func steppingClock(step time.Duration) *fakeClock {
	c := newFakeClock()
	c.step = step
	return c
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.step)
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	c.now = c.now.Add(d)
	return ctx.Err()
}

func newTestEngine(api *fakeAPI, store *fakeStore) *Engine {
	return &Engine{
		Options:     Options{Run: "run-1", Resource: testResource, Pin: testPin, Settle: time.Minute, Concurrency: 1, PageSize: 5},
		Lister:      api,
		Patcher:     api,
		Definition:  api,
		Discovery:   api,
		Checkpoints: store,
		Clock:       newFakeClock(),
	}
}
