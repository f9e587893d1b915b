// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
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

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var testResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}

// testSpec has only what a run needs.
var testSpec = contract.Spec{
	FormatVersion: contract.SpecFormat, Run: "run-1", Resource: metav1.GroupVersionResource(testResource), Pin: testPin,
	Namespace: "ns", RecordConfigMap: "run-1", PropagationDelay: metav1.Duration{Duration: time.Minute},
	Concurrency: 1, PageSize: 5, Pace: v1alpha1.MigrationGentle, Verify: v1alpha1.MigrationVerifyNone,
}

var testKind = schema.GroupKind{Group: "example.com", Kind: "CronTab"}

var testPin = contract.Pin{Name: "crontabs.example.com", UID: "crd-1", Generation: 3}

// stored is an object in etcd.
type stored struct {
	uid      types.UID
	revision int64
	version  string
	edits    string
	owners   []metav1.ManagedFieldsEntry
	// preserved are the annotations in which converters preserve data.
	preserved map[string]string
}

// fakeAPI behaves like an API server with etcd: it has one revision for all objects, lists that
// page over a snapshot, and patches that write only if the bytes differ. The hooks run before the
// request and may change objects. A hook that returns an error fails the request.
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

	// uncached are objects that the watch cache lacks. Lists at an exact resourceVersion, and their
	// further pages, are read from etcd.
	uncached map[string]bool
	// broken are objects that fail every list, and every patch, at these versions.
	broken map[string]string
	// lags makes the API server encode at the old version. drops makes it drop the managedFields of
	// an object with every patch.
	lags  func() bool
	drops func(key string) bool
	// onDryRun runs before a dry run, and onPath before a patch at another version or of a
	// subresource.
	onDryRun func(key string) error
	dryRuns  []string
	onPath   func(patch Patch) error
	// restores makes a write at another version restore the preserved data of an object.
	restores bool

	definition       metav1.PartialObjectMetadata
	onDefinitionRead func() error
	definitionReads  int
}

// newFakeAPI has n objects at v1beta1: ns/a000, ns/a001, …
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
	o := f.objects[key]
	o.uid, o.revision, o.version = uid, f.revision, version
	f.objects[key] = o
}

// edit changes the object like an admission webhook.
func (f *fakeAPI) edit(key string) {
	f.write(key, f.objects[key].version)
	o := f.objects[key]
	o.edits += "x"
	f.objects[key] = o
}

func (o stored) annotations() map[string]string {
	all := maps.Clone(o.preserved)
	if o.edits != "" {
		if all == nil {
			all = map[string]string{}
		}
		all["example.com/edits"] = o.edits
	}
	return all
}

// preserve adds preserved data to an object without a write.
func (f *fakeAPI) preserve(key, annotation, value string) {
	o := f.objects[key]
	o.preserved = map[string]string{annotation: value}
	f.objects[key] = o
}

func (f *fakeAPI) remove(key string) {
	f.revision++
	delete(f.objects, key)
}

func (f *fakeAPI) recreate(key, version string) {
	f.remove(key)
	f.write(key, version)
}

// expire removes all snapshots, like a compaction of etcd.
func (f *fakeAPI) expire() { clear(f.snapshots) }

func (f *fakeAPI) metadata(key string) metav1.PartialObjectMetadata {
	namespace, name, _ := strings.Cut(key, "/")
	o := f.objects[key]
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: o.uid, ResourceVersion: strconv.FormatInt(o.revision, 10), Annotations: o.annotations(),
		ManagedFields: o.owners,
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
func (f *fakeAPI) List(ctx context.Context, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
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
		return f.readable(f.one(scope.Namespace+"/"+name, options), scope.Version)
	}
	list, err := f.page(options)
	if err != nil {
		return nil, err
	}
	return f.readable(list, scope.Version)
}

// readable fails the list if one of its objects cannot be converted.
func (f *fakeAPI) readable(list *metav1.PartialObjectMetadataList, version string) (*metav1.PartialObjectMetadataList, error) {
	if version == "" {
		version = "v1"
	}
	for i := range list.Items {
		if strings.Contains(f.broken[keyOf(&list.Items[i])], version+" ") {
			return nil, unconvertible()
		}
	}
	return list, nil
}

func (f *fakeAPI) one(key string, options metav1.ListOptions) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.ResourceVersion = strconv.FormatInt(f.revision, 10)
	if _, ok := f.objects[key]; ok && (!f.uncached[key] || options.ResourceVersionMatch == metav1.ResourceVersionMatchExact) {
		list.Items = append(list.Items, f.metadata(key))
	}
	return list
}

func (f *fakeAPI) page(options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	now := strconv.FormatInt(f.revision, 10)
	f.snapshots[now] = f.all()
	snapshot, last, _ := strings.Cut(options.Continue, "|")
	switch snapshot {
	case "":
		snapshot = cmp.Or(options.ResourceVersion, now)
	case "latest":
		snapshot = now
	}
	items, ok := f.snapshots[snapshot]
	switch {
	case !ok && options.Continue == "":
		return nil, expiredError("")
	case !ok:
		return nil, expiredError("latest|" + last)
	case options.Continue == "" && options.ResourceVersionMatch != metav1.ResourceVersionMatchExact:
		items = slices.DeleteFunc(slices.Clone(items), func(o metav1.PartialObjectMetadata) bool { return f.uncached[keyOf(&o)] })
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
func (f *fakeAPI) Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	key := patch.Namespace + "/" + patch.Name
	if patch.DryRun {
		return f.dryRun(key, patch)
	}
	f.patched = append(f.patched, key)
	if err := f.before(key, patch); err != nil {
		return nil, err
	}
	if err := f.precondition(key, patch); err != nil {
		return nil, err
	}
	encoding := "v1"
	if f.lags != nil && f.lags() {
		encoding = "v1beta1"
	}
	if owners := f.ownersAfter(key, patch); f.objects[key].version != encoding || len(owners) != len(f.objects[key].owners) {
		f.own(key, owners)
		f.write(key, encoding)
	}
	if f.restores && patch.Version != "" && f.objects[key].preserved != nil {
		o := f.objects[key]
		o.preserved = nil
		f.objects[key] = o
		f.write(key, encoding)
	}
	if f.afterPatch != nil {
		if err := f.afterPatch(key); err != nil {
			return nil, err
		}
	}
	answer := f.metadata(key)
	return &answer, nil
}

func (f *fakeAPI) dryRun(key string, patch Patch) (*metav1.PartialObjectMetadata, error) {
	f.dryRuns = append(f.dryRuns, key)
	if f.onDryRun != nil {
		if err := f.onDryRun(key); err != nil {
			return nil, err
		}
	}
	answer := f.metadata(key)
	answer.ManagedFields = f.ownersAfter(key, patch)
	return &answer, nil
}

// ownersAfter returns the managedFields after a patch.
func (f *fakeAPI) ownersAfter(key string, patch Patch) []metav1.ManagedFieldsEntry {
	var body metav1.PartialObjectMetadata
	switch err := json.Unmarshal(patch.Body, &body); {
	case err != nil || f.drops != nil && f.drops(key):
		return nil
	case body.ManagedFields != nil:
		return body.ManagedFields
	}
	return f.objects[key].owners
}

func (f *fakeAPI) own(key string, owners []metav1.ManagedFieldsEntry) {
	o := f.objects[key]
	o.owners = owners
	f.objects[key] = o
}

func (f *fakeAPI) before(key string, patch Patch) error {
	switch {
	case patch.Version != "" || patch.Subresource != "":
		if f.onPath == nil {
			return apierrors.NewNotFound(testResource.GroupResource(), patch.Name)
		}
		return f.onPath(patch)
	case strings.Contains(f.broken[key], "v1 "):
		return unconvertible()
	case f.onPatch != nil:
		return f.onPatch(key)
	}
	return nil
}

func (f *fakeAPI) precondition(key string, patch Patch) error {
	var body metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch.Body, &body); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	object, ok := f.objects[key]
	switch {
	case !ok:
		return apierrors.NewNotFound(testResource.GroupResource(), patch.Name)
	case body.ResourceVersion != strconv.FormatInt(object.revision, 10):
		return conflict(patch.Name)
	}
	return nil
}

// DefinitionMetadata returns the definition as the hooks changed it.
func (f *fakeAPI) DefinitionMetadata(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.definitionReads++
	if f.onDefinitionRead != nil {
		if err := f.onDefinitionRead(); err != nil {
			return nil, err
		}
	}
	return f.definition.DeepCopy(), nil
}

// ServedResource always shows v1 as the storage version.
func (f *fakeAPI) ServedResource(context.Context) (*metav1.APIResource, error) {
	return shownWith(storageVersionHash("example.com", "v1", "CronTab")), nil
}

// Addresses returns one API server.
func (f *fakeAPI) Addresses(context.Context) ([]string, int, error) {
	return []string{"10.0.0.1:6443"}, 1, nil
}

// ServedResourceAt always shows v1 as the storage version.
func (f *fakeAPI) ServedResourceAt(ctx context.Context, _ string) (*metav1.APIResource, error) {
	return f.ServedResource(ctx)
}

func shownWith(hash string) *metav1.APIResource {
	return &metav1.APIResource{Name: "crontabs", Kind: "CronTab", StorageVersionHash: hash}
}

// oldKeys returns the objects that are not stored at v1.
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

// fakeStore records every saved record.
type fakeStore struct {
	saved  [][]byte
	data   map[string]string
	onSave func() error
	onLoad func() error
	// afterSave is called with every saved record.
	afterSave func(record string)
}

func (s *fakeStore) Load(ctx context.Context) (map[string]string, error) {
	if s.onLoad != nil {
		if err := s.onLoad(); err != nil {
			return nil, err
		}
	}
	data := map[string]string{}
	maps.Copy(data, s.data)
	if len(s.saved) > 0 {
		data[contract.RecordKey] = string(s.saved[len(s.saved)-1])
	}
	return data, ctx.Err()
}

func (s *fakeStore) Save(ctx context.Context, data map[string]string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.onSave != nil {
		if err := s.onSave(); err != nil {
			return err
		}
	}
	if s.data == nil {
		s.data = map[string]string{}
	}
	maps.Copy(s.data, data)
	s.saved = append(s.saved, []byte(data[contract.RecordKey]))
	if s.afterSave != nil {
		s.afterSave(data[contract.RecordKey])
	}
	return nil
}

// failAfter lets n saves pass, and fails all others.
func (s *fakeStore) failAfter(n int, err error) {
	s.onSave = func() error {
		if n--; n < 0 {
			return err
		}
		return nil
	}
}

// whenSaved calls do after the first record that has a text.
func (s *fakeStore) whenSaved(text string, do func()) {
	s.afterSave = func(record string) {
		if strings.Contains(record, text) {
			s.afterSave = nil
			do()
		}
	}
}

// records parses all saved records, so that every test checks that they are valid.
func (s *fakeStore) records(t *testing.T) []contract.Record {
	t.Helper()
	var records []contract.Record
	for _, data := range s.saved {
		r, err := contract.ParseRecord(data)
		expect.NoError(t, err)
		records = append(records, r)
	}
	return records
}

// fakeClock advances by the time slept, and by step with every read.
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
		Spec:        testSpec,
		Lister:      api,
		Patcher:     api,
		Definition:  api,
		Discovery:   api,
		Servers:     api,
		Checkpoints: store,
		Clock:       newFakeClock(),
	}
}

func completedRecord() contract.Record {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	counters := contract.Counters{Total: 6, Rewritten: 3, Current: 2, Gone: 1}
	return contract.Record{
		Format: contract.RecordFormat, Run: "run-1", CRDUID: testPin.UID, CRDGeneration: testPin.Generation,
		State: contract.StateCompleted, Barrier: "7", Counters: counters,
		Checkpoint: contract.Checkpoint{Pages: 2, Counters: counters}, StartTime: &now, CompletionTime: &now,
	}
}

func second[T any](_ T, err error) error { return err }

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error is %v, want one with %q", err, part)
	}
}
